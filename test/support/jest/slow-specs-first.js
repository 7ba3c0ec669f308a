import TestSequencer from '@jest/test-sequencer';

/** Starts the specs of the contracts first: they take longest, and mostly wait. At the end, one worker would wait for them. */
export default class SlowSpecsFirst extends TestSequencer {
  sort(tests) {
    // oxlint-disable-next-line unicorn/no-array-sort -- the method of the base class
    const others = super.sort(tests);
    const slow = others.filter(({ path }) => /[/\\](engine|store)-contract[/\\]/.test(path));
    return [...slow, ...others.filter((test) => !slow.includes(test))];
  }
}
