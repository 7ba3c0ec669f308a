import { beforeEach, describe, expect, it } from '@jest/globals';
import { incoming, REDRIVE_FORCED } from '../../../../../test/store-contract/contract-fixtures.js';
import { startMemoryStore } from '../../../../../test/support/inbox/memory-harness.js';
import type { MemoryHarness } from '../../../../../test/support/inbox/memory-harness.js';
import type { IncomingEvent } from '../../inbox/store/inbox-store.js';

let clock: MemoryHarness['clock'];
let store: MemoryHarness['store'];
let worker: MemoryHarness['worker'];

beforeEach(async () => {
  ({ clock, store, worker } = await startMemoryStore({ maxEvents: 100, maxBytes: 10_000 }));
});

const ofKey = (id: string, occurredMs = 0): IncomingEvent =>
  incoming({ id, orderingKey: 'k', occurredAt: new Date(occurredMs) });
const selection = { company: 'acme', id: 'a', handlers: ['book'] };

describe('deliveries in memory', () => {
  it('a delivery that is redriven many times keeps its last 20 attempts', async () => {
    await store.receive([incoming({ id: 'a' })]);
    const attempts = async () => (await store.find('acme', 'a'))!.deliveries[0]!.history;
    await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
    clock.now = 5;
    const second = await worker.claimOne();
    clock.now = 7;
    await store.complete(second);
    await store.redrive([selection], { force: true, dueInMs: [0] });
    expect(await attempts()).toMatchObject([
      { attempt: 1, outcome: 'failed', error: 'no' },
      { attempt: 2, startedAt: new Date(5), endedAt: new Date(7), outcome: 'done', error: null },
    ]);
    for (let n = 0; n < 20; n += 1) {
      await store.complete(await worker.claimOne());
      await store.redrive([selection], { force: true, dueInMs: [0] });
    }
    await store.complete(await worker.claimOne());
    const outcomes = (await attempts()).map(({ attempt, outcome }) => `${attempt} ${outcome}`);
    expect(outcomes).toEqual(Array.from({ length: 20 }, () => '1 done'));
  });

  it('IN-16 nextDueInMs ignores deliveries that wait for their ordering key, unless the first is due later', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((id) => ofKey(id));
    await store.receive([c!]);
    await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
    await store.receive([a!]);
    const running = await worker.claimOne();
    expect(await store.nextDueInMs(['book'])).toBe(null);
    const later = { ...selection, id: 'c' };
    await store.redrive([later], { force: false, dueInMs: [9] });
    expect(await store.nextDueInMs(['book'])).toBe(9);
    await store.receive([b!]);
    expect(await store.nextDueInMs(['book'])).toBe(null);
    await store.skip([later]);
    expect(await store.nextDueInMs(['book'])).toBe(null);
    clock.now = 5;
    await store.receive([incoming({ id: 'd' })]);
    clock.now = 6;
    expect(await store.complete(running)).toEqual({ settled: true, nextDue: true });
    // The waiting delivery "b" became due only at 6, after "d": a delivery of a busy key does not overtake others.
    expect((await worker.claim()).map(({ id }) => id)).toEqual(['d', 'b']);
  });

  it('newerHandled is true until all events of the ordering key are forgotten', async () => {
    const newerHandled = async (id: string, occurredMs: number) => {
      await store.receive([ofKey(id, occurredMs)]);
      const lease = await worker.claimOne();
      const newer = await store.newerHandled(lease);
      await store.complete(lease);
      return newer;
    };
    expect(await newerHandled('a', 100)).toBe(false);
    clock.now = 40;
    expect(await newerHandled('b', 50)).toBe(true);
    clock.now = 55;
    expect(await newerHandled('c', 70)).toBe(true);
    expect(await store.find('acme', 'a')).toBe(undefined);
    clock.now = 500;
    expect(await newerHandled('d', 60)).toBe(false);
  });

  it('skip counts a delivery once if it is selected twice', async () => {
    await store.receive([incoming({ id: 'a' })]);
    expect(await store.skip([selection, selection])).toBe(1);
    expect(await store.stats()).toMatchObject({ deliveries: [] });
  });

  it('IN-38 the activity does not count an attempt that was done before a redrive as failed', async () => {
    await store.receive([incoming({ id: 'a' })]);
    await store.complete(await worker.claimOne());
    await store.redrive([selection], REDRIVE_FORCED);
    clock.now = 130_000;
    const { minutes } = await store.activity(1440, 1e9);
    expect(minutes.map(({ total }) => total.failed).filter((failed) => failed > 0)).toEqual([]);
    expect(minutes.reduce((sum, { total }) => sum + total.received, 0)).toBe(1);
  });
});
