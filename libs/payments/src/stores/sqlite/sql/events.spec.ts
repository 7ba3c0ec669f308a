import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import { SLICE } from '../../sql/sql-connection.js';
import { SqlPruning } from '../../sql/prune.js';
import type { EventFilter, EventPage } from '../../../inbox/store/inbox-store.js';

let inbox: SqliteDatabase;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
});
afterEach(() => inbox.close());

/** How many statements that contain a text run from now on. */
function countStatements(text: string): { count: number } {
  const counted = { count: 0 };
  const all = inbox.connection.all.bind(inbox.connection);
  inbox.connection.all = <Row>(sql: string, parameters?: readonly unknown[]): Row[] => {
    if (sql.includes(text)) counted.count += 1;
    return all<Row>(sql, parameters);
  };
  return counted;
}

describe('finds, lists, counts and pruning on SQLite', () => {
  it('list() finds a few matching events among several slices of other events', async () => {
    const worker = inbox.worker();
    const receiveMany = (count: number, handlers: string[], first: number) => {
      const events = Array.from({ length: count }, (_, n) =>
        inbox.event({ id: `event-${first + n}`, handlers }),
      );
      inbox.store().receive(events);
    };
    receiveMany(3, ['book'], 0);
    for (const lease of inbox.claim(worker, 2)) {
      inbox.store().fail(lease, { error: 'no', retryInMs: null });
    }
    inbox.now += 1;
    receiveMany(SLICE + 500, ['mail'], 3);
    inbox.now += 1;
    receiveMany(SLICE + 500, [], SLICE + 503);
    const list = (filter: EventFilter, after: string | null = null) =>
      inbox.store().list({ filter, order: 'newest', limit: 1000, after });
    const ids = async (filter: Parameters<typeof list>[0]) =>
      (await list(filter)).events.map(({ id }) => id);
    expect(await ids({ handler: 'book' })).toEqual(['event-2', 'event-1', 'event-0']);
    expect(await ids({ state: 'dead' })).toEqual(['event-1', 'event-0']);
    expect(await ids({ state: 'pending', handler: 'book' })).toEqual(['event-2']);
    expect(await ids({ search: 'event-2', to: new Date(1_000_001) })).toEqual(['event-2']);
    // The ids of more than 2,000 events begin with this text.
    expect(await ids({ search: 'event-', handler: 'book' })).toHaveLength(3);
    expect(await ids({ search: 'event-', state: 'dead' })).toEqual(['event-1', 'event-0']);
    expect(await ids({ state: 'running' })).toEqual([]);
    let count = 0;
    for (let after: string | null | undefined; after !== null;) {
      const page: EventPage = await list({}, after ?? null);
      count += page.events.length;
      after = page.next;
    }
    expect(count).toBe(2 * SLICE + 1003);
    await expect(list({}, 'x')).rejects.toThrow('"next" of the previous page');
  });

  it('list() ends a page after it has read 20,000 events, and the next page continues after these events', async () => {
    inbox.connection.exec(`
      INSERT INTO payments_inbox_event (seq, company, id, event_type, occurred_at, received_at, digest, stale, unhandled,
          source, reference)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 42100)
        SELECT i, 'acme', CASE i WHEN 21000 THEN 'a-id' ELSE 'e' || i END, 't', 1, i / 10, x'00', 0, 0, 'webhook',
          CASE WHEN i <= 2100 THEN 'a-' WHEN i <= 40000 THEN 'b-' ELSE 'c-' END || i FROM n`);
    const slices = countStatements('e.seq IN');
    const ids = async (filter: EventFilter, order: 'newest' | 'oldest') => {
      const pages: string[] = [];
      let after: string | null = null;
      do {
        slices.count = 0;
        const page: EventPage = await inbox.store().list({ filter, order, limit: 1000, after });
        expect(slices.count).toBeLessThanOrEqual(10);
        pages.push(...page.events.map(({ id }) => id));
        after = page.next;
      } while (after !== null);
      return pages;
    };
    const all = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, n) => `e${from + n}`);
    const found = ['a-id', ...all(1, 2100).toReversed()];
    expect(await ids({ search: 'a-' }, 'newest')).toEqual(found);
    expect(await ids({ search: 'c-' }, 'oldest')).toEqual(all(40_001, 42_100));
    expect(await ids({ search: 'e', to: new Date(2) }, 'oldest')).toEqual(all(1, 19));
    expect(await ids({ company: 'nobody' }, 'oldest')).toEqual([]);
    expect(await ids({ company: 'acme', eventType: 't' }, 'newest')).toHaveLength(42_100);
    expect(await ids({ search: 'e1999', company: 'acme' }, 'oldest')).toHaveLength(11);
  });

  it('IN-07 prune() finds a finished event after many unfinished events, in several calls', async () => {
    const { connection } = inbox;
    for (let n = 0; n < 2100; n += 1) inbox.receive({ id: `e${n}`, handlers: ['audit'] });
    inbox.receive({ id: 'last', handlers: [] });
    inbox.now += 100_000;
    const request = { bodiesMs: 10, tombstonesMs: 1e6, limit: 5 };
    let lastKept = 0;
    /** The calls until one is done, and how many events they changed. */
    const pruneAll = async (): Promise<[calls: number, changed: number, lastKept: number]> => {
      const result: [number, number] = [0, 0];
      for (let done = false; !done; result[0] += 1) {
        const slice = { ...request, lastKept };
        const pruned = await new SqlPruning(inbox.sql()).slice(slice);
        result[1] += pruned.changed;
        ({ done, lastKept } = pruned);
      }
      return [...result, lastKept];
    };
    // Three slices of old events, and the first slice of kept events.
    expect(await pruneAll()).toEqual([4, 1, 1000]);
    const isPruned = async (id: string) => (await inbox.store().find('acme', id))?.raw === null;
    expect(await isPruned('last')).toBe(true);
    const handled = ['e5', 'e7', 'e1500', 'e2099'];
    const selections = handled.map((id) => ({ company: 'acme', id, handlers: ['audit'] }));
    inbox.store().skip(selections);
    expect(await pruneAll()).toEqual([1, 1, 2000]);
    expect(await pruneAll()).toEqual([1, 1, 0]);
    request.limit = 1;
    expect(await pruneAll()).toEqual([1, 1, 7]);
    expect(await pruneAll()).toEqual([1, 1, 1007]);
    expect(await Promise.all(handled.map(isPruned))).toEqual([true, true, true, true]);
    expect(connection.get('SELECT count(*) AS kept FROM payments_inbox_kept')).toMatchObject({
      kept: 2096,
    });
  });

  it('IN-07 prune() keeps an event that was received while the clock was a year ahead, and continues after this event', async () => {
    const { now } = inbox;
    inbox.now += 31_536_000_000;
    inbox.receive({ id: 'future', handlers: [] });
    inbox.now = now;
    inbox.receive({ id: 'old', handlers: [] });
    inbox.now += 100_000;
    await inbox.store().pruneSlice({ bodiesMs: 10, tombstonesMs: 1e6, limit: 5, lastKept: 0 });
    expect(inbox.all('SELECT event FROM payments_inbox_kept')).toEqual([{ event: 1 }]);
    expect(inbox.all('SELECT pruned_to FROM payments_inbox_meta')).toEqual([{ pruned_to: 2 }]);
  });

  it('IN-38 activity() reads the 100,000 newest events in slices', async () => {
    const MINUTE = 60_000;
    inbox.now = 2000 * MINUTE;
    // 120 events per minute, and one delivery of each, which was done in the next minute.
    inbox.connection.exec(`
      INSERT INTO payments_inbox_event (seq, company, id, event_type, occurred_at, received_at, digest, stale, unhandled)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 101000)
        SELECT i, 'acme', 'e' || i, 't', 1, ${inbox.now} - (101000 - i) * 500, x'00', 0, 0 FROM n;
      INSERT INTO payments_inbox_delivery (event, handler, state, finished_at)
        SELECT seq, 'book', 'done', received_at + 60000 + seq % 10 FROM payments_inbox_event`);
    const slices = countStatements('CASE WHEN d.failed_at');
    const { minutes, completeFrom } = await inbox.store().activity(1440, inbox.now);
    expect(slices.count).toBe(50);
    expect(completeFrom).toEqual(new Date(1167 * MINUTE));
    const ofMinute = { done: 120, failed: 0, dead: 0, p50Ms: 60_004, p95Ms: 60_009 };
    expect(minutes.at(-1)).toEqual({
      startsAt: new Date(1998 * MINUTE),
      total: { received: 120, ...ofMinute },
      handlers: { book: { received: 120, ...ofMinute } },
    });
    expect(minutes).toHaveLength(1440);
  });

  it('IN-28 stats() count pending deliveries that wait for their turn or are suspects', async () => {
    const [worker, other] = [inbox.worker(1000), inbox.worker(3_600_000)];
    for (const id of ['a', 'b', 'c']) inbox.receive({ id, orderingKey: 'k', handlers: ['book'] });
    for (const handlers of [['audit'], ['mail'], ['mail']]) inbox.receive({ handlers });
    inbox.claim(worker, 1, 'mail');
    inbox.now += 1500;
    await inbox.store().heartbeat(other);
    const [lease] = inbox.claim(other, 1, 'audit');
    inbox.store().fail(lease!, { error: 'no', retryInMs: null });
    inbox.claim(other);
    expect((await inbox.store().stats()).deliveries).toEqual([
      { handler: 'audit', state: 'dead', count: 1, more: false },
      { handler: 'book', state: 'pending', count: 2, more: false },
      { handler: 'book', state: 'running', count: 1, more: false },
      { handler: 'mail', state: 'pending', count: 2, more: false },
    ]);
  });
});
