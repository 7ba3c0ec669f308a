import { describe, expect, it } from '@jest/globals';
import { OutcomeWatches } from './awaited-handlers.js';

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
  it('resolves once an attempt of each handler has ended, with those that failed', async () => {
    const settlements = new OutcomeWatches();
    const failures = settlements.watch('c', 'e-1').failures(['a', 'b']);
    settlements.report(lease('a'), 'failed');
    expect(await isPending(failures)).toBe(true);
    settlements.report(lease('b'), 'succeeded');
    expect(await failures).toEqual(['a']);
  });

  it('counts what ended between the start of the watch and the wait', async () => {
    const settlements = new OutcomeWatches();
    const watch = settlements.watch('c', 'e-1');
    settlements.report(lease('a'), 'succeeded');
    expect(await watch.failures(['a'])).toEqual([]);
  });

  it('uses the last outcome of a handler', async () => {
    const settlements = new OutcomeWatches();
    const watch = settlements.watch('c', 'e-1');
    settlements.report(lease('a'), 'failed');
    settlements.report(lease('a'), 'succeeded');
    expect(await watch.failures(['a'])).toEqual([]);
  });

  it('reports to every watch of the event, and to none of another event or company', async () => {
    const settlements = new OutcomeWatches();
    const [one, two] = [settlements.watch('c', 'e-1'), settlements.watch('c', 'e-1')];
    const others = [settlements.watch('c', 'e-2'), settlements.watch('d', 'e-1')];
    const waits = others.map((watch) => watch.failures(['a']));
    settlements.report(lease('a'), 'failed');
    expect(await Promise.all([one.failures(['a']), two.failures(['a'])])).toEqual([['a'], ['a']]);
    for (const wait of waits) expect(await isPending(wait)).toBe(true);
  });

  it('reports nothing to a watch that has ended, and still to the others', async () => {
    const settlements = new OutcomeWatches();
    const ended = settlements.watch('c', 'e-1');
    const other = settlements.watch('c', 'e-1');
    ended.end();
    ended.end();
    settlements.report(lease('a'), 'succeeded');
    expect(await other.failures(['a'])).toEqual([]);
    expect(await isPending(ended.failures(['a']))).toBe(true);
    other.end();
    const next = settlements.watch('c', 'e-1');
    ended.end();
    settlements.report(lease('a'), 'succeeded');
    expect(await next.failures(['a'])).toEqual([]);
  });

  it('ends every wait as failed once nothing runs any more, also one that starts later', async () => {
    const settlements = new OutcomeWatches();
    const watch = settlements.watch('c', 'e-1');
    const wait = watch.failures(['a', 'b']);
    settlements.report(lease('a'), 'succeeded');
    settlements.abandon();
    expect(await wait).toEqual(['b']);
    expect(await settlements.watch('c', 'e-2').failures(['a'])).toEqual(['a']);
  });

  it('waits for nobody if there are no handlers', async () => {
    expect(await new OutcomeWatches().watch('c', 'e-1').failures([])).toEqual([]);
  });
});
