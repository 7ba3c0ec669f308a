import { describe, expect, it } from '@jest/globals';
import { OutcomeWatches } from './inbox-worker.js';

const lease = (handler: string, id = 'e-1', company = 'c') => ({
  company,
  id,
  handler,
  token: 1,
  seq: 1,
});

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  await new Promise((resolve) => setImmediate(resolve));
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
}

describe('OutcomeWatches', () => {
  it('failures() resolves with the failed handlers once an attempt of each handler has ended', async () => {
    const outcomes = new OutcomeWatches();
    const failures = outcomes.watch('c', 'e-1').failures(['a', 'b']);
    outcomes.report(lease('a'), 'failed');
    expect(await isPending(failures)).toBe(true);
    outcomes.report(lease('b'), 'done');
    expect(await failures).toEqual(['a']);
  });

  it('failures() counts attempts that ended between watch() and failures()', async () => {
    const outcomes = new OutcomeWatches();
    const watch = outcomes.watch('c', 'e-1');
    outcomes.report(lease('a'), 'done');
    expect(await watch.failures(['a'])).toEqual([]);
  });

  it('failures() does not count a handler that failed and then succeeded', async () => {
    const outcomes = new OutcomeWatches();
    const watch = outcomes.watch('c', 'e-1');
    outcomes.report(lease('a'), 'failed');
    outcomes.report(lease('a'), 'done');
    expect(await watch.failures(['a'])).toEqual([]);
  });

  it('report() reaches every watch of the event, and no watch of another event or company', async () => {
    const outcomes = new OutcomeWatches();
    const [one, two] = [outcomes.watch('c', 'e-1'), outcomes.watch('c', 'e-1')];
    const others = [outcomes.watch('c', 'e-2'), outcomes.watch('d', 'e-1')];
    const waits = others.map((watch) => watch.failures(['a']));
    outcomes.report(lease('a'), 'failed');
    expect(await Promise.all([one.failures(['a']), two.failures(['a'])])).toEqual([['a'], ['a']]);
    for (const wait of waits) expect(await isPending(wait)).toBe(true);
  });

  it('report() reaches no watch that has ended, and still reaches the other watches', async () => {
    const outcomes = new OutcomeWatches();
    const ended = outcomes.watch('c', 'e-1');
    const other = outcomes.watch('c', 'e-1');
    ended.end();
    ended.end();
    outcomes.report(lease('a'), 'done');
    expect(await other.failures(['a'])).toEqual([]);
    expect(await isPending(ended.failures(['a']))).toBe(true);
    other.end();
    const next = outcomes.watch('c', 'e-1');
    ended.end();
    outcomes.report(lease('a'), 'done');
    expect(await next.failures(['a'])).toEqual([]);
  });

  it('abandon() makes handlers without an outcome count as failed, also for later watches', async () => {
    const outcomes = new OutcomeWatches();
    const watch = outcomes.watch('c', 'e-1');
    const wait = watch.failures(['a', 'b']);
    outcomes.report(lease('a'), 'done');
    outcomes.abandon();
    expect(await wait).toEqual(['b']);
    expect(await outcomes.watch('c', 'e-2').failures(['a'])).toEqual(['a']);
  });

  it('failures() resolves at once if there are no handlers to wait for', async () => {
    expect(await new OutcomeWatches().watch('c', 'e-1').failures([])).toEqual([]);
  });
});
