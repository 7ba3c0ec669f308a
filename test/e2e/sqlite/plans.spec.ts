import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SqliteDatabase } from '../../support/sqlite/sqlite-database.js';
import { SLICE } from '../../../libs/payments/src/stores/sql/sql-connection.js';
import type {
  EventFilter,
  ExpectationFilter,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';

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

/** Returns whether the line is a scan of a table, and not of a slice, a recursion or a parameter. */
function isScan(line: string, lines: readonly string[]): boolean {
  return (
    /^SCAN (payments_|[des]$|[des] )/.test(line) &&
    !(line === 'SCAN e' && lines.includes('CO-ROUTINE e')) &&
    !(line === 'SCAN s' && /RECURSIVE STEP|MATERIALIZE selected/.test(lines.join()))
  );
}

/** Runs every operation with data that make the operation execute all of its statements. */
async function runEverything(): Promise<void> {
  const [dying, worker] = [inbox.worker(1000), inbox.worker(3_600_000)];
  const assign = { workerId: worker, handlers: ['book'] };
  for (const id of ['a', 'b', 'c', 'd']) inbox.receive({ id, orderingKey: 'k' });
  inbox.receive({ id: 'e', handlers: ['mail'], orderingKey: 'tx', oncePerTransaction: true });
  inbox.receive({ id: 'f', handlers: ['mail'], orderingKey: 'tx', oncePerTransaction: true });
  inbox.receive({ id: 'g', handlers: [] });
  inbox.claim(dying, 1, 'mail');
  inbox.now += 1500;
  await inbox.store().heartbeat(worker);
  const suspect = inbox.store().claimSuspect({ workerId: worker, handlers: ['mail'] })!;
  inbox.store().complete(suspect);
  const [first] = inbox.claim(worker);
  inbox.connection.exec("UPDATE payments_inbox_delivery SET queue = 'due' WHERE state = 'pending'");
  inbox.claim(worker);
  inbox.receive({ id: 'assigned', orderingKey: 'm', assign });
  inbox.store().fail(first!, { error: 'no', retryInMs: null });
  const [second] = inbox.claim(worker);
  inbox.store().fail(second!, { error: 'no', retryInMs: 5 });
  const [third] = inbox.claim(worker);
  inbox.store().release(third!);
  const selections = [{ company: 'acme', id: 'a', handlers: ['book', 'audit'] }];
  inbox.store().redrive(selections, { force: true, dueInMs: [0] });
  inbox.store().skip(selections);
  inbox.store().nextDueInMs(['book']);
  await inbox.store().newerHandled(third!);
  await inbox.store().find('acme', 'e');
  await inbox.store().stats();
  for (const search of ['e', '350.00']) {
    await inbox.store().list({ filter: { search }, order: 'newest', limit: 1, after: null });
  }
  await inbox.store().eventsOf('acme', 'tx');
  await inbox.store().failures();
  await runExpectations();
  await inbox.store().retire(worker, 0);
  await inbox.store().forgetHandler('audit');
  inbox.now += 120_000;
  await inbox.store().activity(1, 1e9);
  for (const tombstonesMs of [1e9, 1e9, 2, 2]) {
    await inbox.store().pruneSlice({ bodiesMs: 1, tombstonesMs, limit: 5, lastKept: 0 });
    inbox.now += 10;
  }
}

async function runExpectations(): Promise<void> {
  const store = () => inbox.store().expectations;
  const one = { company: 'acme', reference: 'a' };
  const expected = { ...one, transactionId: null, dueInMs: null, schedule: [1], firstPollInMs: 0 };
  for (const reference of ['a', 'b', 'c']) {
    await store().expect({ ...expected, reference });
  }
  const started = (await store().startRequest('acme', 'a', 5))!;
  await store().endRequest(one, started.token!, 'answered');
  await store().attach('acme', 'a', 'tx');
  for (const next of [5, 'overdue'] as const) {
    const [lease] = await store().claimPolls({ limit: 1, leaseMs: 5 });
    const outcome = { result: 'pending', detail: 'no', next } as const;
    const settlement = { lease: lease!, outcome, event: null, eventTypes: ['t'], keepLost: false };
    await store().settlePoll(settlement);
  }
  const leases = await store().claimPolls({ limit: 1, leaseMs: 5 });
  await store().releasePolls(leases, [0]);
  await store().nextPollInMs();
  await store().pollNow([one], [0]);
  await store().cancel('acme', 'b');
  inbox.receive({ id: 'x', orderingKey: 'tx', fulfils: true });
  await store().find('acme', 'a');
  await store().counts();
  const searched = { company: 'nobody', search: 'a' };
  await store().list({ filter: searched, limit: 5, after: null });
}

/** The plan of the subquery for a due delivery of an ordering key. */
const dueOfKey = (subquery: number): string[] => [
  `SCALAR SUBQUERY ${subquery}`,
  'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_ordering (handler=? AND ordering=? AND queue=? AND due_at<?)',
];

describe('the plans of the statements on SQLite', () => {
  it('IN-26 IN-33 no statement of the SQLite store scans a table, or an index of done deliveries', async () => {
    await runEverything();
    expect(statements.size).toBeGreaterThan(55);
    const scans = plans().flatMap(({ lines }) => lines.filter((line) => isScan(line, lines)));
    // The exceptions are small: workers, pauses, running deliveries, and the first entry of an index.
    expect([...new Set(scans)].toSorted()).toEqual([
      'SCAN d USING COVERING INDEX payments_inbox_delivery_running',
      'SCAN payments_inbox_delivery USING INDEX payments_inbox_delivery_running',
      'SCAN payments_inbox_meta',
      'SCAN payments_inbox_pause',
      'SCAN payments_inbox_worker',
    ]);
  });

  it.each([
    [
      ['SELECT event, ordering', 'delivery_queue'],
      'SEARCH payments_inbox_delivery USING INDEX payments_inbox_delivery_queue (handler=? AND queue=? AND due_at<?)',
    ],
    [
      ['SELECT due_at', 'delivery_queue'],
      'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_queue (handler=? AND queue=?)',
    ],
    [
      ['AS found', "queue = 'due'"],
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
      ['SELECT next.event'],
      [
        'SEARCH ended USING PRIMARY KEY (event=? AND handler=?)',
        'CORRELATED SCALAR SUBQUERY 1',
        'SEARCH payments_inbox_delivery USING COVERING INDEX payments_inbox_delivery_running (handler=? AND ordering=?)',
        'SEARCH next USING COVERING INDEX payments_inbox_delivery_ordering (handler=? AND ordering=? AND queue=?)',
      ].join('; '),
    ],
    [
      ['SELECT attempts, started_at, history', 'token = ?'],
      'SEARCH payments_inbox_delivery USING PRIMARY KEY (event=? AND handler=?)',
    ],
    [
      ['payments_inbox_kept k'],
      [
        'CO-ROUTINE n',
        'SEARCH k USING INTEGER PRIMARY KEY (rowid>?)',
        'SCAN n',
        'SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
        'CORRELATED SCALAR SUBQUERY 1',
        'SEARCH d USING PRIMARY KEY (event=?)',
      ].join('; '),
    ],
    [
      ['SELECT digest', 'company = ?'],
      'SEARCH payments_inbox_event USING INDEX payments_inbox_event_id (id=? AND company=?)',
    ],
    [
      ['SELECT seq, id, repeats'],
      'SEARCH payments_inbox_event USING INDEX payments_inbox_event_once (ordering_key=? AND event_type=? AND company=?)',
    ],
  ])(
    'IN-33 the statement with %j reads only the index entries that it needs',
    async (texts, plan) => {
      await runEverything();
      expect(planOf(...texts)).toBe(plan);
    },
  );

  it('no statement of the SQLite store sorts due or waiting deliveries', async () => {
    await runEverything();
    const sorted = plans().filter(
      ({ sql, lines }) =>
        /delivery_(queue|ordering|undone)/.test(sql) &&
        lines.some((line) => line.includes('TEMP B-TREE')),
    );
    expect(sorted).toEqual([]);
  });

  it('a search in the SQLite store reads ranges of indexes, and sorts neither events nor failed deliveries', async () => {
    await runEverything();
    const indexes = ['event_id', 'event_once', 'event_transaction', 'event_reference'];
    const searches = indexes.map((index) =>
      plans().filter(
        ({ sql }) =>
          sql.startsWith('SELECT e.seq') && sql.includes(`INDEXED BY payments_inbox_${index}`),
      ),
    );
    // A search for a transaction uses the same statements as the events of a payment, except for the order.
    expect(searches.map((found) => found.length)).toEqual([1, 2, 2, 2]);
    const unsorted = searches.flat().filter(({ sql }) => !sql.includes('ORDER BY e.seq + 0'));
    expect(unsorted).toHaveLength(4);
    const amount = plans().filter(({ sql }) =>
      /SELECT e.seq FROM .* e.seq <= .*e.amount/s.test(sql),
    );
    expect(amount.flatMap(({ lines }) => lines[0])).toEqual([
      'SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)',
    ]);
    const lines = [...unsorted, ...amount].flatMap((plan) => plan.lines);
    const failed = planOf('INDEXED BY payments_inbox_delivery_failed', 'min(s.event)').split('; ');
    expect(
      [...lines, ...failed].filter((line) => /^SCAN payments_|TEMP B-TREE/.test(line)),
    ).toEqual([]);
  });

  it('IN-42 list() with any combination of filters reads slices of one index, in the order of the index', async () => {
    for (let n = 0; n <= SLICE; n += 1) inbox.receive({ id: `e${n}` });
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
    // 2,001 ids begin with this text.
    const [few, many] = ['none', 'e'];
    let lists = 0;
    for (const [time, fact, other, state] of times.flatMap((a) =>
      facts.flatMap((b, index) =>
        facts.slice(index).flatMap((c) => states.map((d) => [a, b, c, d] as const)),
      ),
    )) {
      for (const more of one({}, { search: few }, { search: many }, { ids: ['a'] })) {
        for (const order of ['newest', 'oldest'] as const) {
          const filter = {
            ...time,
            ...fact,
            ...other,
            ...(state && { state }),
            ...more,
          } as EventFilter;
          for (const after of [null, '1']) {
            await inbox.store().list({ filter, order, limit: 50, after });
            lists += 1;
          }
        }
      }
    }
    expect(lists).toBe(7_680);
    expect(statements.size).toBeGreaterThan(1000);
    // These statements sort at most a slice of 2,000 events.
    const isFew = (sql: string) => /json_each|delivery_running|delivery_undone/.test(sql);
    const wrong = plans().filter(({ sql, lines }) =>
      lines.some((line) =>
        line.includes('TEMP B-TREE')
          ? !isFew(sql)
          : isScan(line, lines) && !line.endsWith('delivery_running'),
      ),
    );
    expect(wrong).toEqual([]);
  });

  it('IN-42 list() of expectations with any combination of filters reads slices of one index, in the order of the index', async () => {
    statements.clear();
    const one = <T>(...values: T[]): T[] => values;
    const times = one(
      {},
      { from: new Date(1) },
      { to: new Date(1e13) },
      { from: new Date(1), to: new Date(1e13) },
    );
    const states = one(undefined, 'waiting', 'fulfilled', 'overdue', 'cancelled');
    const facts = one(
      {},
      { company: 'acme' },
      { fulfilledBy: 'poll' },
      { contradictory: true },
      { overdue: 'unknown' },
    );
    const names = one({}, { transactionId: 'tx' }, { search: 'a' });
    for (const time of times) {
      for (const state of states) {
        for (const [fact, other] of facts.flatMap((a) => facts.map((b) => [a, b] as const))) {
          for (const name of names) {
            for (const after of [null, '5.1']) {
              const filter = {
                ...time,
                ...(state && { state }),
                ...fact,
                ...other,
                ...name,
              } as ExpectationFilter;
              await inbox.store().expectations.list({ filter, limit: 50, after });
            }
          }
        }
      }
    }
    expect(statements.size).toBeGreaterThan(250);
    // Only a small selection is sorted: expectations with given numbers, or expectations of one transaction.
    const wrong = plans().filter(({ sql, lines }) =>
      lines.some((line) =>
        line.includes('TEMP B-TREE')
          ? !/json_each|expectation_transaction/.test(sql)
          : isScan(line, lines),
      ),
    );
    expect(wrong).toEqual([]);
  });

  it('IN-28 stats() reads at most 10,001 index entries for each handler and state', async () => {
    const worker = inbox.worker();
    inbox.connection.exec(`
      INSERT INTO payments_inbox_event (seq, company, id, event_type, occurred_at, received_at, digest, stale, unhandled)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        SELECT i, 'acme', 'e' || i, 't', 1, 1, x'00', 0, 0 FROM n;
      INSERT INTO payments_inbox_delivery (event, handler, state, queue, due_at)
        SELECT seq, 'book', 'pending', 'due', 1 FROM payments_inbox_event;
      INSERT INTO payments_inbox_body SELECT seq, x'00', '{}' FROM payments_inbox_event`);
    inbox.claim(worker, 5);
    const all = jest.spyOn(inbox.connection, 'all');
    expect((await inbox.store().stats()).deliveries).toEqual([
      { handler: 'book', state: 'pending', count: 10_000, more: true },
      { handler: 'book', state: 'running', count: 5, more: false },
    ]);
    const rows = all.mock.results[0]!.value as { value: number | null }[];
    expect(rows.map(({ value }) => value)).toContain(10_001);
    // All indexes are covering, so that no row of the delivery table is read.
    const { lines } = plans().find(({ sql }) => sql.includes('count(*)'))!;
    const read = lines.filter((line) => /^(SEARCH|SCAN) d /.test(line));
    expect(read.length).toBeGreaterThan(12);
    expect(read.filter((line) => !line.includes('COVERING INDEX'))).toEqual([]);
  });
});
