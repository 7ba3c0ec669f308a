import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';

let inbox: SqliteDatabase;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
});
afterEach(() => inbox.close());

/** The pending deliveries, in the order of their receipt. */
const pending = () =>
  inbox.all<{ id: string; queue: string; crashes: number }>(
    `SELECT e.id, d.queue, d.crashes FROM payments_inbox_delivery d JOIN payments_inbox_event e ON e.seq = d.event
     WHERE d.state = 'pending' ORDER BY e.seq`,
  );

describe('claims and outcomes on SQLite', () => {
  it('a claim and a receive lease nothing to a worker that is not live', () => {
    const assign = { workerId: 'unknown', handlers: ['book'] };
    inbox.receive({ assign });
    expect(pending()).toHaveLength(1);
    expect(inbox.claim('unknown')).toEqual([]);
    const request = { workerId: 'unknown', handlers: ['book'] };
    expect(inbox.store().claimSuspect(request)).toBeNull();
  });

  it('IN-20 the history keeps each attempt of a done delivery that runs again', async () => {
    const worker = inbox.worker();
    const id = inbox.receive();
    const selections = [{ company: 'acme', id, handlers: ['book'] }];
    const options = { force: true, dueInMs: [0] };
    const started: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      const [lease] = inbox.claim(worker);
      started.push(inbox.now);
      inbox.now += 7;
      inbox.store().complete(lease!);
      inbox.now += 100;
      if (n < 2) inbox.store().redrive(selections, options);
    }
    const { history } = (await inbox.store().find('acme', id))!.deliveries[0]!;
    expect(history).toMatchObject(
      started.map((ms) => ({
        attempt: 1,
        startedAt: new Date(ms),
        endedAt: new Date(ms + 7),
        outcome: 'done',
      })),
    );
  });

  it('IN-13 a settlement compares only the state and the token, and no clock', () => {
    const worker = inbox.worker();
    inbox.receive();
    const [lease] = inbox.claim(worker);
    const store = inbox.store();
    const not = { settled: false, nextDue: false };
    expect(store.complete({ ...lease!, token: 0 })).toEqual(not);
    expect(store.release(lease!).settled).toBe(true);
    expect(store.complete(lease!)).toEqual(not);
    const [again] = inbox.claim(worker);
    expect(again).toMatchObject({ attempt: 1, token: 2 });
    expect(store.complete(lease!)).toEqual(not);
    inbox.now += 1_000_000;
    expect(inbox.store().complete(again!).settled).toBe(true);
  });

  it('IN-18 the store clock decides when a retry is due, and find() returns that time as a time of the wall clock', async () => {
    const worker = inbox.worker();
    const id = inbox.receive();
    const [lease] = inbox.claim(worker);
    // The wall clock was set back.
    const times = { ...inbox.times, wall: inbox.now - 500_000, clock: inbox.now + 400 };
    const failedAt = { ...times, clock: inbox.now };
    inbox.store(failedAt).fail(lease!, { error: 'no', retryInMs: 1000.4 });
    expect((await inbox.store(times).find('acme', id))?.deliveries).toMatchObject([
      { state: 'pending', dueAt: new Date(times.wall + 600) },
    ]);
    expect(inbox.store(times).nextDueInMs(['book', 'book'])).toBe(600);
  });
});
