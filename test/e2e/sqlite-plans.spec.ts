import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SqliteDatabase } from '../support/sqlite/sqlite-database.js';
import type { EventFilter } from '../../libs/payments/src/inbox/store/inbox-store.js';
import { OPERATIONS } from '../../libs/payments/src/stores/sqlite/thread/operations.js';

let inbox: SqliteDatabase;
let statements: Set<string>;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
  statements = new Set();
  const prepare = inbox.database.prepare.bind(inbox.database);
  inbox.database.prepare = (sql) => {
    statements.add(sql);
    return prepare(sql);
  };
});
afterEach(() => inbox.close());

/** The plan of each prepared statement, with a line for each table that the statement reads. */
function plans(): { sql: string; lines: string[] }[] {
  return [...statements]
    .filter((sql) => !sql.startsWith('EXPLAIN'))
    .map((sql) => ({
      sql,
      lines: inbox.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail),
    }));
}

/** The plan of the statement that contains all these texts. */
function planOf(...texts: string[]): string {
  const found = plans().filter(({ sql }) => texts.every((text) => sql.includes(text)));
  expect(found).toHaveLength(1);
  return found[0]!.lines.join('; ');
}

/** Runs every operation, with data with which the operation executes each of its statements. */
function runEverything(): void {
  const { connection } = inbox;
  const [dying, worker] = [inbox.worker(1000), inbox.worker(3_600_000)];
  const assign = { worker, handlers: ['book'] };
  for (const id of ['a', 'b', 'c', 'd']) inbox.receive({ id, orderingKey: 'k' });
  inbox.receive({ id: 'e', handlers: ['mail'], orderingKey: 'tx', oncePerTransaction: true });
  inbox.receive({ id: 'f', handlers: ['mail'], orderingKey: 'tx', oncePerTransaction: true });
  inbox.receive({ id: 'g', handlers: [] });
  inbox.claim(dying, 1, 'mail');
  inbox.now += 1500;
  OPERATIONS.heartbeat(connection, { worker }, inbox.times);
  const request = { worker, handlers: ['mail'] };
  const suspect = OPERATIONS.claimSuspect(connection, request, inbox.times)!;
  OPERATIONS.complete(connection, { lease: suspect }, inbox.times);
  const [first] = inbox.claim(worker);
  inbox.connection.exec("UPDATE payments_inbox_delivery SET queue = 'due' WHERE state = 'pending'");
  inbox.claim(worker);
  inbox.receive({ id: 'assigned', orderingKey: 'm', assign });
  OPERATIONS.fail(connection, { lease: first!, error: 'no', retryInMs: null }, inbox.times);
  const [second] = inbox.claim(worker);
  OPERATIONS.fail(connection, { lease: second!, error: 'no', retryInMs: 5 }, inbox.times);
  const [third] = inbox.claim(worker);
  OPERATIONS.release(connection, { lease: third!, dueInMs: 0 }, inbox.times);
  const selections = [{ company: 'acme', id: 'a', handlers: ['book', 'audit'] }];
  OPERATIONS.redrive(connection, { selections, force: true, dueInMs: [0] }, inbox.times);
  OPERATIONS.skip(connection, { selections }, inbox.times);
  OPERATIONS.nextDue(connection, { handlers: ['book'] }, inbox.times);
  OPERATIONS.find(connection, { company: 'acme', id: 'e' }, inbox.times);
  OPERATIONS.stats(connection, null, inbox.times);
  OPERATIONS.eventsFound(connection, { text: 'e' });
  OPERATIONS.failuresSlice(connection, { before: null });
  runExpectations();
  OPERATIONS.retire(connection, { worker, graceMs: 0 }, inbox.times);
  OPERATIONS.forgetHandler(connection, { handler: 'audit' }, inbox.times);
  inbox.now += 120_000;
  OPERATIONS.activitySlice(connection, { before: 1000, fromMinute: 0 });
  for (const tombstonesMs of [1e9, 1e9, 2, 2]) {
    const prune = { bodiesMs: 1, tombstonesMs, limit: 5, lastKept: 0 };
    OPERATIONS.prune(connection, prune, inbox.times);
    inbox.now += 10;
  }
}

function runExpectations(): void {
  const { connection } = inbox;
  const one = { company: 'acme', reference: 'a' };
  const expected = { ...one, transactionId: null, dueInMs: null, schedule: [1], firstPollInMs: 0 };
  for (const reference of ['a', 'b', 'c']) {
    OPERATIONS.expect(connection, { ...expected, reference }, inbox.times);
  }
  const started = OPERATIONS.startRequest(connection, { ...one, leaseMs: 5 }, inbox.times)!;
  const end = { ...one, token: started.token!, end: 'answered' };
  OPERATIONS.endRequest(connection, end);
  OPERATIONS.attach(connection, { ...one, transactionId: 'tx' }, inbox.times);
  for (const next of [5, 'overdue'] as const) {
    const [lease] = OPERATIONS.claimPolls(connection, { limit: 1, leaseMs: 5 }, inbox.times);
    const outcome = { result: 'pending', detail: 'no', next } as const;
    const settlement = { lease: lease!, outcome, event: null, eventTypes: ['t'], keepLost: false };
    OPERATIONS.settlePoll(connection, settlement, inbox.times);
  }
  const leases = OPERATIONS.claimPolls(connection, { limit: 1, leaseMs: 5 }, inbox.times);
  OPERATIONS.releasePolls(connection, { leases, dueInMs: [0] }, inbox.times);
  OPERATIONS.nextPollInMs(connection, null, inbox.times);
  OPERATIONS.pollNow(connection, { selections: [one], dueInMs: [0] }, inbox.times);
  OPERATIONS.cancel(connection, { ...one, reference: 'b' });
  inbox.receive({ id: 'x', orderingKey: 'tx', fulfils: true });
  OPERATIONS.findExpectation(connection, one, inbox.times);
  OPERATIONS.countExpectations(connection);
}

/** The plan of the subquery for a due delivery of an ordering key. */
const dueOfKey = (subquery: number): string[] => [
  `SCALAR SUBQUERY ${subquery}`,
  'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_ordering (handler=? AND ordering=? AND queue=? AND due_at<?)',
];

describe('the plans of the statements on SQLite', () => {
  it('IN-26 IN-33 no statement scans a table, or an index of done deliveries', () => {
    runEverything();
    expect(statements.size).toBeGreaterThan(55);
    const scans = plans().flatMap(({ lines }) =>
      lines.filter((line) => /^SCAN (payments_|[de]$|[de] )/.test(line)),
    );
    // The exceptions are small: handlers, workers, pauses, running deliveries, and the first entry of an index.
    expect([...new Set(scans)].toSorted()).toEqual([
      'SCAN payments_inbox_delivery USING INDEX payments_inbox_delivery_running',
      'SCAN payments_inbox_handler',
      'SCAN payments_inbox_meta',
      'SCAN payments_inbox_pause',
      'SCAN payments_inbox_worker',
    ]);
  });

  it.each([
    [
      ['SELECT event_seq, ordering', 'delivery_queue'],
      'SEARCH payments_inbox_delivery USING INDEX payments_inbox_delivery_queue (handler=? AND queue=? AND due_at<?)',
    ],
    [
      ['SELECT due_at', 'delivery_queue'],
      'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_queue (handler=? AND queue=?)',
    ],
    [
      ['AS busy'],
      [
        'SCAN CONSTANT ROW',
        'SCALAR SUBQUERY 1',
        'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_running (handler=? AND ordering=?)',
        ...[2, 3].flatMap(dueOfKey),
      ].join('; '),
    ],
    [
      ['INSERT INTO payments_inbox_delivery', "'running'"],
      ['SCAN CONSTANT ROW', ...[1, 2, 3].flatMap(dueOfKey)].join('; '),
    ],
    [
      ["queue = 'waiting' LIMIT 1"],
      'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_queue (handler=? AND queue=?)',
    ],
    [
      ['SELECT next.event_seq'],
      [
        'SEARCH ended USING PRIMARY KEY (event_seq=? AND handler=?)',
        'CORRELATED SCALAR SUBQUERY 1',
        'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_running (handler=? AND ordering=?)',
        'SEARCH next USING COVERING INDEX payments_inbox_delivery_ordering (handler=? AND ordering=? AND queue=?)',
      ].join('; '),
    ],
    [
      ['SELECT attempts, started_at, history', 'token = ?'],
      'SEARCH payments_inbox_delivery USING PRIMARY KEY (event_seq=? AND handler=?)',
    ],
    [
      ['payments_inbox_kept k'],
      [
        'SEARCH k USING INTEGER PRIMARY KEY (rowid>?)',
        'SEARCH e USING INTEGER PRIMARY KEY (rowid=?)',
        'CORRELATED SCALAR SUBQUERY 1',
        'SEARCH payments_inbox_delivery USING PRIMARY KEY (event_seq=?)',
      ].join('; '),
    ],
    [
      ['SELECT digest', 'company = ?'],
      'SEARCH payments_inbox_event USING INDEX payments_inbox_event_id (id=? AND company=?)',
    ],
    [
      ['SELECT seq, id', 'once = 1'],
      'SEARCH payments_inbox_event USING INDEX payments_inbox_event_once (ordering_key=? AND event_type=? AND company=?)',
    ],
  ])('IN-33 the statement with %j reads only the index entries that it needs', (texts, plan) => {
    runEverything();
    expect(planOf(...texts)).toBe(plan);
  });

  it('no statement sorts due or waiting deliveries', () => {
    runEverything();
    const sorted = plans().filter(
      ({ sql, lines }) =>
        /delivery_(queue|ordering|undone)/.test(sql) &&
        lines.some((line) => line.includes('TEMP B-TREE')),
    );
    expect(sorted).toEqual([]);
  });

  it('a search reads ranges of indexes, and sorts neither events nor failed deliveries', () => {
    runEverything();
    const indexes = [
      'event_id',
      'event_once',
      'event_transaction',
      'event_reference',
      'delivery_error',
    ];
    const searches = indexes.map((index) =>
      plans().filter(({ sql }) => sql.includes(`INDEXED BY payments_inbox_${index}`)),
    );
    expect(searches.map((found) => found.length)).toEqual([1, 1, 1, 1, 1]);
    const lines = searches.flat().flatMap((plan) => plan.lines);
    expect(lines.filter((line) => /^SCAN payments_|TEMP B-TREE/.test(line))).toEqual([]);
  });

  it('IN-42 a list with any combination of filters reads slices of one index, in its order', () => {
    const { connection } = inbox;
    inbox.receive({ id: 'a' });
    statements.clear();
    const one = <T>(...values: T[]): T[] => values;
    const times = one(
      {},
      { from: new Date(1) },
      { to: new Date(1e13) },
      { from: new Date(1), to: new Date(1e13) },
    );
    const facts = one(
      {},
      { company: 'acme' },
      { eventType: 't' },
      { source: 'poll' as const },
      { handler: 'book' },
    );
    const states = one(
      undefined,
      'pending',
      'running',
      'done',
      'dead',
      'skipped',
      'unhandled',
      'stale',
    );
    const few = { seqs: '[1]', many: false, text: 'a' };
    let lists = 0;
    for (const [time, fact, other, state] of times.flatMap((a) =>
      facts.flatMap((b) => facts.flatMap((c) => states.map((d) => [a, b, c, d] as const))),
    )) {
      for (const [found, ids] of one([null], [few], [{ ...few, many: true }], [null, ['a']]) as [
        typeof few | null,
        string[]?,
      ][]) {
        for (const order of ['newest', 'oldest'] as const) {
          const filter = {
            ...time,
            ...fact,
            ...other,
            ...(state && { state }),
            ...(ids && { ids }),
          } as EventFilter;
          for (const after of [null, 1]) {
            OPERATIONS.listSlice(
              connection,
              { filter, found, order, limit: 50, after },
              inbox.times,
            );
            lists += 1;
          }
        }
      }
    }
    expect(lists).toBe(12_800);
    expect(statements.size).toBeGreaterThan(1000);
    const isFew = (sql: string) => /json_each|delivery_running/.test(sql);
    const wrong = plans().filter(({ sql, lines }) =>
      lines.some((line) =>
        line.includes('TEMP B-TREE')
          ? !isFew(sql)
          : /^SCAN (payments_|[de]$|[de] )/.test(line) && !line.endsWith('delivery_running'),
      ),
    );
    expect(wrong).toEqual([]);
  });

  it('IN-28 stats reads at most 10,001 index entries for each handler and state', () => {
    const worker = inbox.worker();
    inbox.connection.exec(`
      INSERT INTO payments_inbox_event (seq, company, id, event_type, occurred_at, received_at, digest, stale, undelivered)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        SELECT i, 'acme', 'e' || i, 't', 1, 1, x'00', 0, 0 FROM n;
      INSERT INTO payments_inbox_delivery (event_seq, handler, state, queue, due_at, received_at)
        SELECT seq, 'book', 'pending', 'due', 1, 1 FROM payments_inbox_event;
      INSERT INTO payments_inbox_body SELECT seq, x'00', '{}' FROM payments_inbox_event`);
    inbox.claim(worker, 5);
    const get = jest.spyOn(inbox.connection, 'get');
    expect(OPERATIONS.stats(inbox.connection, null, inbox.times).deliveries).toEqual([
      { handler: 'book', state: 'pending', count: 10_000, more: true },
      { handler: 'book', state: 'running', count: 5, more: false },
    ]);
    const read = get.mock.results.map(({ value }) => (value as { count?: number })?.count ?? 0);
    expect(Math.max(...read)).toBe(10_001);
    const counts = plans().filter(({ sql }) => sql.includes('count(*)'));
    expect(counts.every(({ sql }) => sql.includes('LIMIT'))).toBe(true);
    // A covering index: no row of the table is read.
    const rowsRead = counts.filter(
      ({ lines }) => !lines.some((line) => line.includes('COVERING INDEX')),
    );
    expect(rowsRead).toEqual([]);
  });
});
