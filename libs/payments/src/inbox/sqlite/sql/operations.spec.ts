import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { noCounts } from '../activity.minutes.js';
import { SqliteConnection } from './sqlite.connection.js';
import { loadDriver } from './sqlite.driver.js';
import type { DriverDatabase } from './sqlite.driver.js';
import { SLICE } from './sqlite.list.js';
import { OPERATIONS } from './sqlite.operations.js';
import { listPage } from './sqlite.page.js';
import { migrate } from './sqlite.schema.js';

let database: DriverDatabase;
let connection: SqliteConnection;
beforeEach(async () => {
  database = new (await loadDriver())(':memory:');
  connection = new SqliteConnection(database);
  migrate(connection, 100);
});
afterEach(() => connection.close());

function receive(count: number, handlers: readonly string[], now: number, first = 0): void {
  const events = Array.from({ length: count }, (_, index) => {
    const id = `event-${first + index}`;
    return {
      company: 'acme',
      id,
      dedupeKey: index % 2 === 0 ? id : `key-${id}`,
      eventType: 't',
      occurredAt: first + index,
      orderingKey: `tx-${first + index}`,
      raw: new Uint8Array([1]),
      headers: {},
      stale: false,
      handlers,
    };
  });
  OPERATIONS.receive(connection, { events }, now);
}

const claim = (limit: number, now: number) =>
  OPERATIONS.claim(connection, { handlers: ['book'], limit, leaseMs: 1000 }, now);

const list = (filter: Parameters<typeof listPage>[0]['filter'], limit = 10) =>
  listPage({ filter, order: 'newest', limit, after: null }, async (slice) =>
    OPERATIONS.listSlice(connection, slice),
  );

describe('the operations on SQLite', () => {
  it('never scan a table, nor the index of what is finished', () => {
    const statements: string[] = [];
    const prepare = database.prepare.bind(database);
    database.prepare = (sql) => {
      statements.push(sql);
      return prepare(sql);
    };
    receive(20, ['book', 'mail'], 1);
    const leases = claim(5, 2);
    OPERATIONS.extend(connection, { lease: leases[0]!, leaseMs: 5 }, 3);
    OPERATIONS.complete(connection, { lease: leases[0]! }, 3);
    OPERATIONS.release(connection, { lease: leases[1]!, dueInMs: 0 }, 3);
    for (const [index, retryInMs] of [5, null].entries()) {
      OPERATIONS.fail(connection, { lease: leases[2 + index]!, error: 'no', retryInMs }, 3);
    }
    const selections = [{ company: 'acme', id: 'event-1', handlers: ['book', 'audit'] }];
    OPERATIONS.redrive(connection, { selections, force: true, dueInMs: [0] }, 3);
    OPERATIONS.skip(connection, { selections }, 3);
    OPERATIONS.nextDue(connection, { handlers: ['book'] });
    OPERATIONS.find(connection, { company: 'acme', id: 'event-1' });
    OPERATIONS.stats(connection, {}, 3);
    OPERATIONS.prune(connection, { bodiesMs: 1, tombstonesMs: 2, limit: 5 }, 9);
    expect(statements.length).toBeGreaterThan(15);
    const scans = statements.flatMap((sql) => {
      const plan = prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
      return plan
        .map(({ detail }) => detail)
        .filter((detail) => detail.startsWith('SCAN payments_'));
    });
    // These are as large as the list of handlers, or as what is unfinished, of which the first row is read.
    expect(new Set(scans)).toEqual(
      new Set([
        'SCAN payments_inbox_handler',
        'SCAN payments_inbox_count',
        'SCAN payments_inbox_delivery USING INDEX payments_inbox_delivery_unfinished',
      ]),
    );
  });

  it('find what is rare among many events, in slices', async () => {
    receive(3, ['book'], 1);
    for (const { id, ...lease } of claim(2, 2)) {
      OPERATIONS.fail(connection, { lease: { id, ...lease }, error: 'no', retryInMs: null }, 3);
    }
    receive(SLICE + 500, ['mail'], 10, 3);
    receive(SLICE + 500, [], 20, SLICE + 503);
    const ids = async (filter: Parameters<typeof list>[0]) =>
      (await list(filter)).events.map(({ id }) => id);
    expect(await ids({ handler: 'book' })).toEqual(['event-2', 'event-1', 'event-0']);
    expect(await ids({ state: 'dead' })).toEqual(['event-1', 'event-0']);
    expect(await ids({ state: 'pending', handler: 'book' })).toEqual(['event-2']);
    expect(await ids({ search: 'event-2', to: new Date(2) })).toEqual(['event-2']);
    expect(await ids({ state: 'running' })).toEqual([]);
    let count = 0;
    let after: string | null = null;
    do {
      const page = await listPage(
        { filter: {}, order: 'oldest', limit: 1000, after },
        async (slice) => OPERATIONS.listSlice(connection, slice),
      );
      count += page.events.length;
      after = page.next;
    } while (after !== null);
    expect(count).toBe(2 * SLICE + 1003);
    await expect(
      listPage({ filter: {}, order: 'oldest', limit: 1, after: 'x' }, () => Promise.reject()),
    ).rejects.toThrow('"next" of the page before');
  });

  it('keep the minutes of a day, and no row of the day before', () => {
    const minutes = () =>
      connection
        .all<{ minute: number }>('SELECT minute FROM payments_inbox_activity ORDER BY 1')
        .map(({ minute }) => minute / 60_000);
    for (const minute of [0, 1, 1440]) {
      OPERATIONS.record(connection, { counts: { ...noCounts(), received: 1 } }, minute * 60_000);
    }
    const request = { bodiesMs: 1e12, tombstonesMs: 1e12, limit: 10 };
    OPERATIONS.prune(connection, request, 1440 * 60_000 - 1);
    expect(minutes()).toEqual([0, 1, 1440]);
    OPERATIONS.prune(connection, request, 1440 * 60_000);
    expect(minutes()).toEqual([1, 1440]);
  });

  it('keep their counts right through every way a delivery can go', () => {
    receive(6, ['book'], 1);
    receive(2, [], 1, 100);
    const leases = claim(4, 2);
    OPERATIONS.complete(connection, { lease: leases[0]! }, 3);
    OPERATIONS.fail(connection, { lease: leases[1]!, error: 'no', retryInMs: null }, 3);
    const select = (id: string, handlers: string[]) => [{ company: 'acme', id, handlers }];
    OPERATIONS.skip(connection, { selections: select('event-5', ['book']) }, 3);
    const added = select('event-100', ['audit']);
    OPERATIONS.redrive(connection, { selections: added, force: false, dueInMs: [0] }, 3);
    OPERATIONS.prune(connection, { bodiesMs: 1, tombstonesMs: 1000, limit: 100 }, 50);
    const counted = connection.all(
      `SELECT handler, state, count(*) AS count FROM payments_inbox_delivery GROUP BY 1, 2 ORDER BY 1, 2`,
    );
    const { deliveries, unhandled } = OPERATIONS.stats(connection, {}, 50);
    expect(deliveries).toEqual(counted.map((row) => ({ ...row })));
    expect(deliveries).toEqual([
      { handler: 'audit', state: 'pending', count: 1 },
      { handler: 'book', state: 'dead', count: 1 },
      { handler: 'book', state: 'pending', count: 1 },
      { handler: 'book', state: 'running', count: 2 },
    ]);
    expect(unhandled).toBe(0);
    const open = connection.all(
      `SELECT seq FROM payments_inbox_event e WHERE open <> (SELECT count(*) FROM payments_inbox_delivery
       WHERE event_seq = e.seq AND state NOT IN ('done', 'skipped'))
       OR deliveries <> (SELECT count(*) FROM payments_inbox_delivery WHERE event_seq = e.seq)`,
    );
    expect(open).toEqual([]);
  });

  it('claim past the deliveries of one busy ordering key', () => {
    const event = (id: string, orderingKey: string | null) => ({
      company: 'acme',
      id,
      dedupeKey: id,
      eventType: 't',
      occurredAt: 1,
      orderingKey,
      raw: new Uint8Array(),
      headers: {},
      stale: false,
      handlers: ['book'],
    });
    const busy = Array.from({ length: 50 }, (_, index) => event(`busy-${index}`, 'busy'));
    OPERATIONS.receive(connection, { events: [...busy, event('other', 'free')] }, 1);
    expect(claim(2, 2).map(({ id }) => id)).toEqual(['busy-0', 'other']);
    expect(claim(2, 3)).toEqual([]);
    expect(claim(2, 1500).map(({ id }) => id)).toEqual(['busy-1', 'other']);
  });
});
