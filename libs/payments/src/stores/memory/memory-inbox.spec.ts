import { beforeEach, describe, expect, it } from '@jest/globals';
import { incoming, REDRIVE_FORCED } from '../../../../../test/store-contract/contract-fixtures.js';
import { startMemoryStore } from '../../../../../test/support/inbox/memory-harness.js';
import type { MemoryHarness } from '../../../../../test/support/inbox/memory-harness.js';
import type { IncomingEvent } from '../../inbox/store/inbox-store.js';
import { expected, fulfilling } from '../../../../../test/store-contract/expectation-cases.js';

let clock: MemoryHarness['clock'];
let store: MemoryHarness['store'];
let worker: MemoryHarness['worker'];

async function start(limits?: Parameters<typeof startMemoryStore>[0]): Promise<void> {
  ({ clock, store, worker } = await startMemoryStore(limits));
}

beforeEach(() => start());

const event = (id: string, bytes = 10, fields: Partial<IncomingEvent> = {}) =>
  incoming({ id, raw: Buffer.alloc(bytes), occurredAt: new Date(0), ...fields });
const outcomes = async (...events: IncomingEvent[]) =>
  (await store.receive(events)).map(({ outcome }) => outcome);

/** Receives an event, and completes its delivery. */
async function finish(id: string, bytes = 10, fields: Partial<IncomingEvent> = {}): Promise<void> {
  expect(await outcomes(event(id, bytes, fields))).toEqual(['stored']);
  await store.complete(await worker.claimOne());
  clock.now += 1;
}

/** The stored part of each event: `body`, `tombstone` or `forgotten` (nothing). */
async function kept(...ids: string[]): Promise<string[]> {
  const found = await Promise.all(ids.map((id) => store.find('acme', id)));
  return found.map((one) => (one === undefined ? 'forgotten' : one.raw ? 'body' : 'tombstone'));
}

describe('memoryStore', () => {
  it('IN-38 after the store deleted events to make room, the activity is complete from the minute after the newest deleted event', async () => {
    await start({ maxEvents: 2 });
    const completeFrom = async () => (await store.activity(60, 1e9)).completeFrom.getTime();
    await finish('a');
    clock.now = 600_000;
    await finish('b');
    clock.now = 1_200_000;
    expect(await completeFrom()).toBe(-2_460_000);
    await store.receive([event('c')]);
    expect(await completeFrom()).toBe(60_000);
    await store.receive([event('d')]);
    expect(await completeFrom()).toBe(660_000);
    await expect(store.receive([event('e')])).rejects.toThrow(/full/);
    expect(await completeFrom()).toBe(660_000);
  });

  it('receive() rejects with inbox_full if a batch does not fit; copies of an event in a batch need room only once', async () => {
    await start({ maxEvents: 2 });
    const batch = [event('a'), event('b'), event('c')];
    await expect(store.receive(batch)).rejects.toMatchObject({ code: 'inbox_full' });
    expect(await kept('a', 'b')).toEqual(['forgotten', 'forgotten']);
    expect(await outcomes(event('a'), event('b'), event('a'), event('b'))).toEqual([
      'stored',
      'stored',
      'duplicate',
      'duplicate',
    ]);
    await expect(store.receive([event('c')])).rejects.toThrow(/full/);
  });

  it('receive() stores neither copies nor outdated events, so they need no room', async () => {
    await start({ maxEvents: 1 });
    const copies = [
      event('a', 10, { orderingKey: 'tx', oncePerTransaction: true }),
      event('b', 10, { orderingKey: 'tx', oncePerTransaction: true }),
    ];
    expect(await outcomes(...copies, event('c', 10, { catalogVersion: 7 }))).toEqual([
      'stored',
      'duplicate',
      'outdated',
    ]);
  });

  it('receive() deletes the bodies of the events that finished first, and no more bodies than necessary', async () => {
    await finish('a', 40);
    await finish('b', 40);
    await store.receive([event('c', 20)]);
    expect(await kept('a', 'b', 'c')).toEqual(['body', 'body', 'body']);
    await store.receive([event('d', 1)]);
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['tombstone', 'body', 'body', 'body']);
    expect(await outcomes(event('a', 40), event('a', 41))).toEqual(['duplicate', 'conflict']);
    await store.receive([event('e', 1)]);
    expect(await kept('a', 'b')).toEqual(['forgotten', 'body']);
  });

  it('receive() makes room by deleting the events that finished first, with their ids and transactions', async () => {
    for (const id of ['a', 'b', 'c', 'd'])
      await finish(id, 10, { orderingKey: `key of ${id}`, oncePerTransaction: true });
    await store.receive([event('e'), event('f')]);
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['forgotten', 'forgotten', 'body', 'body']);
    expect(
      await outcomes(event('x', 10, { orderingKey: 'key of d', oncePerTransaction: true })),
    ).toEqual(['duplicate']);
    expect(
      await outcomes(event('y', 10, { orderingKey: 'key of a', oncePerTransaction: true })),
    ).toEqual(['stored']);
  });

  it('receive() deletes nothing if unfinished events leave too little room', async () => {
    await finish('a', 50);
    await store.receive([event('b', 40)]);
    const tooMany = ['c', 'd', 'e', 'f'].map((id) => event(id, 1));
    for (const batch of [tooMany, [event('c', 61)]]) {
      await expect(store.receive(batch)).rejects.toMatchObject({ code: 'inbox_full' });
    }
    expect(await kept('a', 'b')).toEqual(['body', 'body']);
    expect(await outcomes(event('c', 60))).toEqual(['stored']);
  });

  it('receive() deletes nothing of an event that was redriven', async () => {
    await finish('a', 40);
    await finish('b', 40);
    const selection = { company: 'acme', id: 'a', handlers: ['book'] };
    await store.redrive([selection], { force: true, dueInMs: [0] });
    await store.receive([event('c', 60)]);
    expect(await kept('a', 'b')).toEqual(['body', 'tombstone']);
  });

  it('receive() makes room by deleting a dead letter completely; it keeps no tombstone, because copies of the event would then be duplicates', async () => {
    await store.receive([event('a', 60)]);
    await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
    await store.receive([event('b', 60)]);
    expect(await kept('a')).toEqual(['forgotten']);
  });

  it('a copy is a duplicate even if its original is deleted to make room for the same batch', async () => {
    await start({ maxEvents: 1 });
    await finish('a');
    expect(await outcomes(event('b'), event('a'))).toEqual(['stored', 'duplicate']);
  });

  it('stats do not count deliveries of deleted events', async () => {
    await start({ maxEvents: 1 });
    await store.receive([event('a')]);
    await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
    await store.receive([event('b', 10, { handlers: [] })]);
    await store.receive([event('c', 10, { orderingKey: 'k' })]);
    expect(await store.stats()).toMatchObject({
      deliveries: [{ handler: 'book', state: 'pending', count: 1 }],
      unhandled: { count: 0 },
    });
  });

  it('IN-01 a change of a received or returned body does not change the stored body', async () => {
    const received = event('a', 4);
    await store.receive([received]);
    received.raw.fill(1);
    (await store.find('acme', 'a'))!.raw!.fill(2);
    expect((await store.find('acme', 'a'))!.raw!.toString('hex')).toBe('00000000');
  });

  it('IN-33 20,000 deliveries that wait for one ordering key do not slow down other claims', async () => {
    await start({ maxEvents: 100_000, maxBytes: 1e9 });
    const key = { orderingKey: 'k' };
    await store.receive(Array.from({ length: 20_000 }, (_, n) => event(`waiting ${n}`, 1, key)));
    const [busy] = await worker.claim(['book'], 1);
    expect(await worker.claim()).toEqual([]);
    const begun = performance.now();
    for (let n = 0; n < 2000; n += 1) {
      await store.receive([event(`free ${n}`, 1)]);
      await store.complete(await worker.claimOne());
    }
    // 2,000 claims that looked at 20,000 deliveries each would take seconds.
    expect(performance.now() - begun).toBeLessThan(2000);
    expect(await store.complete(busy!)).toEqual({ settled: true, nextDue: true });
  });
});

const ofKey = (id: string, occurredMs = 0): IncomingEvent =>
  incoming({ id, orderingKey: 'k', occurredAt: new Date(occurredMs) });
const selection = { company: 'acme', id: 'a', handlers: ['book'] };

describe('deliveries in memory', () => {
  beforeEach(() => start({ maxEvents: 100, maxBytes: 10_000 }));

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

  it('IN-16 nextDueInMs() ignores a due delivery that waits for its ordering key, but not a delivery that is due later', async () => {
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
    expect((await worker.claim()).map(({ id }) => id)).toEqual(['b', 'd']);
  });

  it('newerHandled() is true until all events of the ordering key are forgotten', async () => {
    const newerHandled = async (id: string, occurredMs: number) => {
      await store.receive([ofKey(id, occurredMs)]);
      const lease = await worker.claimOne();
      const newer = await store.newerHandled(lease);
      await store.complete(lease);
      return newer;
    };
    expect(await newerHandled('a', 100)).toBe(false);
    clock.now = 200;
    expect(await newerHandled('b', 50)).toBe(true);
    const prune = () => store.prune({ bodiesMs: 100, tombstonesMs: 100, limit: 10 });
    clock.now = 240;
    expect(await prune()).toBe(1);
    expect(await newerHandled('c', 70)).toBe(true);
    expect(await store.find('acme', 'a')).toBe(undefined);
    clock.now = 500;
    expect(await prune()).toBe(2);
    expect(await newerHandled('d', 60)).toBe(false);
  });

  it('skip() counts a delivery once if it is selected twice', async () => {
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

const expectFour = async (): Promise<void> => {
  for (const reference of ['a', 'b', 'c', 'd']) {
    await store.expectations.expect(expected({ reference, transactionId: 'tx' }));
  }
};

describe('memoryExpectations', () => {
  beforeEach(() => start({ maxEvents: 4, maxBytes: 10_000 }));

  it('EX-01 expect() throws a TypeError if it gets a transaction', async () => {
    const { expectations } = store;
    await expect(expectations.expect(expected({ reference: 'a' }), {})).rejects.toThrow(TypeError);
    expect(await expectations.find('acme', 'a')).toBe(undefined);
  });

  it('EX-01 expect() rejects with inbox_full if maxEvents expectations are open, and events are still stored', async () => {
    await expectFour();
    const { expectations } = store;
    const full = { code: 'inbox_full', message: expect.stringContaining('expectations') };
    await expect(expectations.expect(expected({ reference: 'e' }))).rejects.toMatchObject(full);
    expect(await expectations.find('acme', 'e')).toBe(undefined);
    expect(await expectations.expect(expected({ reference: 'a' }))).toBe(false);
    const events = [incoming(), incoming(), incoming(), fulfilling({ orderingKey: 'tx' })];
    const receipts = await store.receive(events);
    expect(receipts.map(({ outcome }) => outcome)).toEqual(events.map(() => 'stored'));
    expect((await expectations.find('acme', 'd'))?.state).toBe('fulfilled');
  });

  it('in a full store, a new expectation replaces the oldest ended expectation, or the oldest overdue expectation if none has ended', async () => {
    await expectFour();
    const { expectations } = store;
    await expectations.cancel('acme', 'c');
    const lease = { limit: 1, leaseMs: 1000 };
    const [poll] = await expectations.claimPolls(lease);
    const outcome = { result: 'unknown', detail: null, next: 'overdue' } as const;
    const settlement = { lease: poll!, outcome, event: null, eventTypes: [], keepLost: false };
    await expectations.settlePoll(settlement);
    await expectations.expect(expected({ reference: 'e' }));
    const references = async () => {
      const page = await expectations.list({ filter: {}, limit: 10, after: null });
      return page.expectations.map(({ reference }) => reference);
    };
    expect(await references()).toEqual(['e', 'd', 'b', 'a']);
    await expectations.expect(expected({ reference: 'f' }));
    expect(await references()).toEqual(['f', 'e', 'd', 'b']);
  });
});
