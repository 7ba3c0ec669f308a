import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite.database.js';
import { listPage } from '../list-page.js';
import { OPERATIONS } from '../thread/operations.js';
import { SLICE } from './list.js';

let inbox: SqliteDatabase;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
});
afterEach(() => inbox.close());

const { redrive, skip, complete, fail, release, heartbeat, summarize, stats } = OPERATIONS;

/** `held` or not, due time, by id, of what is pending. */
const pending = () =>
  inbox.all<{ id: string; held: number; crashes: number }>(
    `SELECT e.id, d.held, d.crashes FROM payments_inbox_delivery d JOIN payments_inbox_event e ON e.seq = d.event_seq
     WHERE d.state = 'pending' ORDER BY e.seq`,
  );

describe('the operations on SQLite', () => {
  it('IN-33 read and hold one delivery of an ordering key, however many wait', () => {
    const worker = inbox.worker();
    for (let n = 0; n < 50; n += 1) inbox.receive({ id: `k${n}`, orderingKey: 'k' });
    inbox.receive({ id: 'other', orderingKey: 'free' });
    expect(inbox.all('SELECT 1 FROM payments_inbox_delivery WHERE held = 0')).toHaveLength(2);
    expect(inbox.claim(worker).map(({ id }) => id)).toEqual(['k0', 'other']);
    inbox.receive({ id: 'late', orderingKey: 'k' });
    expect(inbox.claim(worker)).toEqual([]);
    expect(pending().every(({ held }) => held === 1)).toBe(true);
  });

  it('IN-33 hold at most a bounded number of deliveries in a claim, and go on with the next', () => {
    const worker = inbox.worker();
    const selections = Array.from({ length: 1300 }, (_, n) => {
      const id = inbox.receive({ id: `k${n}`, orderingKey: 'k' });
      return { company: 'acme', id, handlers: ['book'] };
    });
    inbox.receive({ id: 'other' });
    expect(inbox.claim(worker, 1)).toHaveLength(1);
    // As after a redrive of a key that was not busy at the time.
    inbox.connection.exec('UPDATE payments_inbox_delivery SET held = 0');
    expect(inbox.claim(worker, 1)).toEqual([]);
    expect(inbox.claim(worker, 1)).toEqual([]);
    expect(inbox.claim(worker, 1).map(({ id }) => id)).toEqual(['other']);
    expect(skip(inbox.connection, { selections }, inbox.times)).toBe(1299);
  });

  it('IN-16 keep the order of a key: what is released runs before what was received later', () => {
    const worker = inbox.worker();
    for (const id of ['a', 'b', 'c']) {
      inbox.now += 1;
      inbox.receive({ id, orderingKey: 'k' });
    }
    const order: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      inbox.now += 1;
      const [lease] = inbox.claim(worker);
      order.push(lease!.id);
      if (n < 2) inbox.receive({ id: `late ${n}`, orderingKey: 'k' });
      const settlement = complete(inbox.connection, { lease: lease! }, inbox.times);
      expect(settlement).toEqual({ settled: true, nextDue: n < 4 });
    }
    expect(order).toEqual(['a', 'b', 'c', 'late 0', 'late 1']);
  });

  it('hold nothing behind a suspect, which only claimSuspect leases', () => {
    const [worker, other] = [inbox.worker(1000), inbox.worker(3_600_000)];
    inbox.receive({ id: 'suspect', orderingKey: 'k' });
    inbox.claim(worker);
    inbox.now += 1001;
    heartbeat(inbox.connection, { worker: other }, inbox.times);
    inbox.receive({ id: 'next', orderingKey: 'k', assign: { worker: other, handlers: ['book'] } });
    expect(pending()).toEqual([
      { id: 'suspect', held: 0, crashes: 1 },
      { id: 'next', held: 0, crashes: 0 },
    ]);
    expect(inbox.claim(other).map(({ id }) => id)).toEqual(['next']);
  });

  it('lease nothing to a worker that is not live', () => {
    const assign = { worker: 'unknown', handlers: ['book'] };
    inbox.receive({ assign });
    expect(pending()).toHaveLength(1);
    expect(inbox.claim('unknown')).toEqual([]);
    const request = { worker: 'unknown', handlers: ['book'], alone: true };
    expect(OPERATIONS.claimSuspect(inbox.connection, request, inbox.times)).toBeNull();
  });

  it('do not report an event as newer that has the same time', () => {
    const worker = inbox.worker();
    for (const [id, occurredAt] of [
      ['first', 10],
      ['same', 10],
      ['older', 9],
    ] as const) {
      inbox.receive({ id, orderingKey: 'k', occurredAt });
    }
    const newer = Array.from({ length: 3 }, () => {
      const [lease] = inbox.claim(worker);
      complete(inbox.connection, { lease: lease! }, inbox.times);
      return [lease!.id, lease!.newerHandled];
    });
    expect(newer).toEqual([
      ['first', false],
      ['same', false],
      ['older', true],
    ]);
  });

  it('IN-13 settle by the token alone, and only what is running', () => {
    const worker = inbox.worker();
    inbox.receive();
    const [lease] = inbox.claim(worker);
    const { connection, times } = inbox;
    const not = { settled: false, nextDue: false };
    expect(complete(connection, { lease: { ...lease!, token: 0 } }, times)).toEqual(not);
    expect(release(connection, { lease: lease!, dueInMs: 0 }, times).settled).toBe(true);
    expect(complete(connection, { lease: lease! }, times)).toEqual(not);
    const [again] = inbox.claim(worker);
    expect(again).toMatchObject({ attempt: 1, token: 2 });
    expect(complete(connection, { lease: lease! }, times)).toEqual(not);
    inbox.now += 1_000_000;
    expect(complete(connection, { lease: again! }, inbox.times).settled).toBe(true);
  });

  it('IN-18 make a retry due on the clock of due times, and show it on the wall clock', () => {
    const worker = inbox.worker();
    const id = inbox.receive();
    const [lease] = inbox.claim(worker);
    // The wall clock was set back.
    const times = { ...inbox.times, wall: inbox.now - 500_000, clock: inbox.now + 400 };
    const failedAt = { ...times, clock: inbox.now };
    fail(inbox.connection, { lease: lease!, error: 'no', retryInMs: 1000.4 }, failedAt);
    const find = { company: 'acme', id };
    expect(OPERATIONS.find(inbox.connection, find, times)?.deliveries).toMatchObject([
      { state: 'pending', dueAt: times.wall + 600 },
    ]);
    expect(OPERATIONS.nextDue(inbox.connection, { handlers: ['book', 'book'] }, times)).toBe(600);
  });

  it('find what is rare among many events, in slices', async () => {
    const worker = inbox.worker();
    const receiveMany = (count: number, handlers: string[], first: number) => {
      const events = Array.from({ length: count }, (_, n) =>
        inbox.event({ id: `event-${first + n}`, handlers }),
      );
      OPERATIONS.receive(inbox.connection, { events }, inbox.times);
    };
    receiveMany(3, ['book'], 0);
    for (const lease of inbox.claim(worker, 2)) {
      fail(inbox.connection, { lease, error: 'no', retryInMs: null }, inbox.times);
    }
    inbox.now += 1;
    receiveMany(SLICE + 500, ['mail'], 3);
    inbox.now += 1;
    receiveMany(SLICE + 500, [], SLICE + 503);
    const list = (filter: Parameters<typeof listPage>[0]['filter'], after: string | null = null) =>
      listPage({ filter, order: 'newest', limit: 1000, after }, async (slice) =>
        OPERATIONS.listSlice(inbox.connection, slice, inbox.times),
      );
    const ids = async (filter: Parameters<typeof list>[0]) =>
      (await list(filter)).events.map(({ id }) => id);
    expect(await ids({ handler: 'book' })).toEqual(['event-2', 'event-1', 'event-0']);
    expect(await ids({ state: 'dead' })).toEqual(['event-1', 'event-0']);
    expect(await ids({ state: 'pending', handler: 'book' })).toEqual(['event-2']);
    expect(await ids({ search: 'event-2', to: new Date(1_000_001) })).toEqual(['event-2']);
    expect(await ids({ state: 'running' })).toEqual([]);
    let count = 0;
    for (let after: string | null | undefined; after !== null;) {
      const page = await list({}, after ?? null);
      count += page.events.length;
      after = page.next;
    }
    expect(count).toBe(2 * SLICE + 1003);
    await expect(list({}, 'x')).rejects.toThrow('"next" of the page before');
  });

  it('IN-07 prune past events that are not finished, in bounded calls', () => {
    const { connection } = inbox;
    for (let n = 0; n < 2100; n += 1) inbox.receive({ handlers: ['audit'] });
    inbox.receive({ id: 'last', handlers: [] });
    inbox.now += 1000;
    const request = { bodiesMs: 10, tombstonesMs: 1e6, limit: 5, after: null };
    let calls = 0;
    let changed = 0;
    for (let pruned = OPERATIONS.prune(connection, request, inbox.times); ;) {
      calls += 1;
      changed += pruned.changed;
      if (pruned.done) break;
      pruned = OPERATIONS.prune(connection, { ...request, after: pruned.next }, inbox.times);
    }
    expect([calls, changed]).toEqual([3, 1]);
    expect(
      OPERATIONS.find(connection, { company: 'acme', id: 'last' }, inbox.times)?.raw,
    ).toBeNull();
  });

  it('IN-38 write a day of minutes, and rewrite the last two, and those that the wall clock repeats', () => {
    const MINUTE = 60_000;
    const minutes = () =>
      inbox
        .all<{ minute: number; received: number }>(
          "SELECT minute / 60000 AS minute, received FROM payments_inbox_activity WHERE handler = '' ORDER BY 1",
        )
        .map(({ minute, received }) => [minute, received]);
    const summarizeAt = (ms: number) => {
      inbox.now = ms;
      for (let from: number | null | undefined; from !== null;) {
        from = summarize(inbox.connection, { from: from ?? null }, inbox.times);
      }
    };
    inbox.now = 2000 * MINUTE;
    inbox.receive();
    summarizeAt(2001 * MINUTE + 10_000);
    expect(minutes()).toHaveLength(1440);
    expect(minutes().slice(-2)).toEqual([
      [1999, 0],
      [2000, 1],
    ]);
    // A transaction that committed late.
    inbox.now = 2001 * MINUTE - 1;
    inbox.receive();
    summarizeAt(2001 * MINUTE + 20_000);
    expect(minutes().at(-1)).toEqual([2000, 2]);
    // The wall clock is set back by an hour, and again comes to minutes that were written.
    inbox.now = 1941 * MINUTE;
    inbox.receive();
    summarizeAt(1942 * MINUTE + 10_000);
    expect(minutes().find(([minute]) => minute === 1941)).toEqual([1941, 1]);
    const last = OPERATIONS.activity(inbox.connection, { minutes: 2 }, inbox.times);
    expect(last.filter(({ handler }) => handler === '').map(({ minute }) => minute)).toEqual([
      1940 * MINUTE,
      1941 * MINUTE,
    ]);
  });

  it('count all handlers in the indexes, the held and the suspects included', () => {
    const [worker, other] = [inbox.worker(1000), inbox.worker(3_600_000)];
    const { connection } = inbox;
    for (const id of ['a', 'b', 'c']) inbox.receive({ id, orderingKey: 'k', handlers: ['book'] });
    for (const handlers of [['audit'], ['mail'], ['mail']]) inbox.receive({ handlers });
    inbox.claim(worker, 1, 'mail');
    inbox.now += 1001;
    heartbeat(connection, { worker: other }, inbox.times);
    const [lease] = inbox.claim(other, 1, 'audit');
    fail(connection, { lease: lease!, error: 'no', retryInMs: null }, inbox.times);
    inbox.claim(other);
    expect(stats(connection, null, inbox.times).deliveries).toEqual([
      { handler: 'audit', state: 'dead', count: 1, more: false },
      { handler: 'book', state: 'pending', count: 2, more: false },
      { handler: 'book', state: 'running', count: 1, more: false },
      { handler: 'mail', state: 'pending', count: 2, more: false },
    ]);
  });

  it('redrive a delivery of a busy key as held', () => {
    const worker = inbox.worker();
    inbox.receive({ id: 'dead', orderingKey: 'k' });
    const [lease] = inbox.claim(worker);
    fail(inbox.connection, { lease: lease!, error: 'no', retryInMs: null }, inbox.times);
    inbox.receive({ id: 'running', orderingKey: 'k' });
    inbox.claim(worker);
    const selections = [{ company: 'acme', id: 'dead', handlers: ['book', 'mail'] }];
    const request = { selections, force: false, dueInMs: [0] };
    expect(redrive(inbox.connection, request, inbox.times)).toBe(2);
    expect(pending()).toEqual([
      { id: 'dead', held: 1, crashes: 0 },
      { id: 'dead', held: 0, crashes: 0 },
    ]);
  });
});
