import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import { OPERATIONS } from '../thread/operations.js';

let inbox: SqliteDatabase;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
});
afterEach(() => inbox.close());

const { complete, fail, release } = OPERATIONS;

/** The pending deliveries, in the order of their receipt. */
const pending = () =>
  inbox.all<{ id: string; queue: string; crashes: number }>(
    `SELECT e.id, d.queue, d.crashes FROM payments_inbox_delivery d JOIN payments_inbox_event e ON e.seq = d.event_seq
     WHERE d.state = 'pending' ORDER BY e.seq`,
  );

describe('claims and outcomes on SQLite', () => {
  it('a claim and a receive lease nothing to a worker that is not live', () => {
    const assign = { worker: 'unknown', handlers: ['book'] };
    inbox.receive({ assign });
    expect(pending()).toHaveLength(1);
    expect(inbox.claim('unknown')).toEqual([]);
    const request = { worker: 'unknown', handlers: ['book'] };
    expect(OPERATIONS.claimSuspect(inbox.connection, request, inbox.times)).toBeNull();
  });

  it('IN-20 the history keeps each attempt of a done delivery that runs again', () => {
    const worker = inbox.worker();
    const id = inbox.receive();
    const selections = [{ company: 'acme', id, handlers: ['book'] }];
    const request = { selections, force: true, dueInMs: [0] };
    const started: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      const [lease] = inbox.claim(worker);
      started.push(inbox.now);
      inbox.now += 7;
      complete(inbox.connection, { lease: lease! }, inbox.times);
      inbox.now += 100;
      if (n < 2) OPERATIONS.redrive(inbox.connection, request, inbox.times);
    }
    const found = OPERATIONS.find(inbox.connection, { company: 'acme', id }, inbox.times)!;
    expect(JSON.parse(found.deliveries[0]!.history)).toEqual(
      started.map((startedAt) => [1, startedAt, 7, 'd']),
    );
  });

  it('IN-13 settling compares only the state and the token, and no clock', () => {
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

  it('IN-18 a retry is due by the store clock, and find returns its time by the wall clock', () => {
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
});
