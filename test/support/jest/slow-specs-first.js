import TestSequencer from '@jest/test-sequencer';

/** Starts the specs of the contracts first, because they take longest. Started last, they would run alone at the end. */
export default class SlowSpecsFirst extends TestSequencer {
  sort(tests) {
    // oxlint-disable-next-line unicorn/no-array-sort -- the method of the base class
    const others = super.sort(tests);
    const slow = others.filter(({ path }) => /[/\\](engine|store)-contract[/\\]/.test(path));
    return [...slow, ...others.filter((test) => !slow.includes(test))];
  }
}
