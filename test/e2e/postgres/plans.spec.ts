import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Client } from 'pg';
import type {
  EventState,
  ExpectationFilter,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { RECEIVE_PARAMETERS } from '../../../libs/payments/src/stores/postgres/sql/receive.js';
import {
  claim,
  idsOf,
  incoming,
  pagesRead,
  pagesReadBy,
  startWorker,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';
import { RecordingPool } from '../../support/postgres/recording-pool.js';
import type { RecordedStatement } from '../../support/postgres/recording-pool.js';

const inboxes = usePostgresInboxes({ keepOpen: true });

const BACKLOG = 1500;

/** A statement must not read more with a longer backlog, even if it was planned with statistics of empty tables. */
describe('functions in PostgreSQL that were planned with empty tables', () => {
  let store: InboxStore;
  let client: Client;
  const worker = randomUUID();
  const one = `ARRAY['default'], ARRAY['new 9'], ARRAY['book']`;
  const nulls = (type: string): string => `array_fill(NULL::${type}, ARRAY[20])`;
  const settle = `SELECT * FROM payments.settle($1::bigint[], array_fill('book'::text, ARRAY[20]), $2::bigint[],
    array_fill('done'::text, ARRAY[20]), ${nulls('text')}, ${nulls('text')}, ${nulls('bigint')})`;
  const texts = {
    claim: `SELECT * FROM payments.claim('${worker}', '{book}', '{20}', '{NULL}', false)`,
    suspect: `SELECT * FROM payments.claim('${worker}', '{book}', '{1}', '{NULL}', true)`,
    finish: `SELECT payments.finish($1::bigint, 'book', $2::bigint)`,
    heartbeat: `SELECT * FROM payments.free_lost('${worker}', false)`,
    due: `SELECT payments.first_due_ms('book', NULL)`,
    skip: `SELECT payments.skip(${one})`,
    redrive: `SELECT payments.redrive(${one}, ARRAY[0]::bigint[], false, '{}', NULL)`,
    release: 'SELECT payments.release_unreleased()',
  };
  beforeAll(async () => {
    store = await inboxes.open({ schema: 'payments' });
    await store.register({ id: worker, leaseMs: 600_000, handlers: [] });
    // Without autovacuum there are no new statistics, so PostgreSQL keeps the plans that it makes now.
    for (const table of ['event', 'delivery']) {
      await inboxes.query(`ALTER TABLE payments.${table} SET (autovacuum_enabled = off)`);
    }
    client = await inboxes.openClient();
    for (const text of Object.values(texts)) {
      if (!text.includes('$1')) await pagesOf(text);
    }
    await pagesOf(settle, [['1'], ['1']]);
    await pagesOf(texts.finish, ['1', '1']);
    const backlog = Array.from({ length: BACKLOG }, (_, n) =>
      incoming(`new ${n}`, { orderingKey: `key ${n % 30}` }),
    );
    for (let n = 0; n < BACKLOG; n += 500) await store.receive(backlog.slice(n, n + 500));
    const others = backlog.map((event, n) => ({ ...event, id: `free ${n}`, orderingKey: null }));
    for (let n = 0; n < BACKLOG; n += 500) await store.receive(others.slice(n, n + 500));
    // One delivery of each key runs, and the other deliveries of the key wait.
    while (!(await claim(store, 5, worker)).some(({ id }) => id.startsWith('free')));
  });

  const pagesOf = (text: string, values?: (string | string[])[]): Promise<number> =>
    pagesRead(client, text, values);

  it.each([
    ['claim', 1500],
    ['suspect', 100],
    ['due', 100],
    ['heartbeat', 200],
    ['skip', 300],
    ['redrive', 300],
    ['release', 1200],
  ] as const)('statement "%s" reads fewer than %d pages with a backlog', async (name, bound) => {
    expect(await pagesOf(texts[name])).toBeLessThan(bound);
  });

  it('the functions `settle` and `finish` read only the deliveries that they change', async () => {
    const leases = await claim(store, 20, worker);
    expect(leases).toHaveLength(20);
    const column = (of: 'seq' | 'token'): string[] => leases.map((lease) => String(lease[of]));
    expect(await pagesOf(settle, [column('seq'), column('token')])).toBeLessThan(1200);
    const finish = pagesOf(texts.finish, [column('seq')[0]!, column('token')[0]!]);
    expect(await finish).toBeLessThan(100);
  });

  it('the function `receive` reads fewer than 200 pages if its table was nearly empty when PostgreSQL planned the function', async () => {
    const small = await inboxes.open({ schema: 'small' });
    for (let n = 0; n < 10; n += 1) await small.receive([incoming(`first ${n}`)]);
    await inboxes.query('VACUUM ANALYZE small.event');
    await inboxes.query('ALTER TABLE small.event SET (autovacuum_enabled = off)');
    const values: Record<string, string> = {
      'text[]': `ARRAY['x']`,
      'bytea[]': `ARRAY['x']::bytea[]`,
      'uuid[]': `ARRAY['${worker}']::uuid[]`,
      'boolean[]': 'ARRAY[true]',
      'bigint[]': 'ARRAY[0]::bigint[]',
    };
    const types = RECEIVE_PARAMETERS.split(', ').map((parameter) => parameter.split(' ')[1]!);
    const text = `SELECT * FROM small.receive(${types.map((type) => values[type]!).join(', ')})`;
    await pagesOf(text);
    for (let n = 0; n < 3000; n += 500) {
      await small.receive(
        Array.from({ length: 500 }, (_, m) =>
          incoming(`later ${n + m}`, { orderingKey: `${n + m}`, oncePerTransaction: true }),
        ),
      );
    }
    expect(await pagesOf(text)).toBeLessThan(200);
    // A second event of the same transaction is detected as a duplicate.
    await small.receive([incoming('known', { orderingKey: 'known', oncePerTransaction: true })]);
    expect(
      await small.receive([incoming('copy', { orderingKey: 'known', oncePerTransaction: true })]),
    ).toMatchObject([{ outcome: 'duplicate', id: 'known' }]);
  });
});

describe('PostgreSQL with a large backlog of one ordering key and one handler', () => {
  it('IN-33 claim() and stats() read as few pages with a large backlog as without a backlog', async () => {
    const pool = new RecordingPool({ connectionString: inboxes.connectionString });
    const [empty, full] = [
      await inboxes.open({ schema: 'empty' }),
      await inboxes.open({ schema: 'full', pool }),
    ];
    // One delivery of the key runs and 20,000 wait. The handler "big" has 80,000 due deliveries.
    await full.receive([incoming('hot', { orderingKey: 'hot' })]);
    await claim(full, 1);
    await inboxes.query(`
      INSERT INTO "full".delivery (event, handler, state, waiting, due_at, ordering)
      SELECT 1000 + n, 'book', 'pending', true, ${NOW_MS}, (SELECT ordering FROM "full".event)
        FROM generate_series(1, 20000) n;
      INSERT INTO "full".delivery (event, handler, state, due_at)
      SELECT 1000 + n, 'big', 'pending', ${NOW_MS} FROM generate_series(1, 80000) n`);
    const client = await inboxes.openClient();
    const pages: Record<string, number> = {};
    for (const [schema, store] of Object.entries({ empty, full })) {
      await store.receive([incoming('other', { orderingKey: 'other' })]);
      const text = `SELECT * FROM "${schema}".claim('${await startWorker(store)}', '{book}', '{20}', '{NULL}', false)`;
      // The first call makes the plans, which reads pages too.
      await pagesRead(client, text);
      pages[schema] = await pagesRead(client, text);
      expect(idsOf(await claim(store, 20))).toEqual(['other']);
    }
    expect(pages['full']).toBeLessThan(pages['empty']! + 20);
    // Counts stop at 10,000 for each handler and kind of delivery. Each count reads one index.
    pool.recorded.length = 0;
    await full.stats();
    await pagesReadBy(client, pool.recorded);
    expect(await pagesReadBy(client, pool.recorded)).toBeLessThan(600);
    await inboxes.close();
    await pool.end();
  });
});

describe('PostgreSQL with many open expectations', () => {
  let pool: RecordingPool;
  beforeAll(() => {
    pool = new RecordingPool({ connectionString: inboxes.connectionString });
  });
  afterAll(async () => {
    await inboxes.close();
    await pool.end();
  });
  const COUNT = 30_000;
  /** Stores expectations. Each has a transaction id and a due poll. */
  const fill = (): Promise<unknown> =>
    inboxes.query(`
      INSERT INTO many.expectation (company, reference, transaction_id, created_at, created_clock, schedule, next_poll_at)
      SELECT 'default', 'order ' || n, 'tx ' || n, 1000000 + n, 1000000 + n, '[1000]', 1000000 + n
        FROM generate_series(${COUNT / 1000}, ${COUNT}) n`);

  it('EX-14 each operation reads few pages with 30,000 expectations, with and without statistics of the tables', async () => {
    const store = await inboxes.open({ schema: 'many', pool });
    const worker = await startWorker(store);
    const { expectations } = store;
    const event = incoming('e', { orderingKey: 'tx 77', fulfils: true, reference: 'order 78' });
    const page = { limit: 50, after: null };
    const list = (order: 'newest' | 'oldest', state?: EventState) =>
      store.list({ filter: state === undefined ? {} : { state }, order, ...page });
    const expected = (filter: ExpectationFilter) => expectations.list({ filter, ...page });
    type Operations = Record<string, () => Promise<unknown>>;
    const ofFewRows: Operations = {
      nextDue: () => store.nextDueInMs(['book']),
      nextPoll: () => expectations.nextPollInMs(),
      heartbeat: () => store.heartbeat(worker),
      stats: () => store.stats(),
      newest: () => list('newest'),
      oldest: () => list('oldest'),
      pending: () => list('newest', 'pending'),
      dead: () => list('newest', 'dead'),
      find: () => expectations.find('default', 'order 79'),
      cancel: () => expectations.cancel('default', 'order 80'),
      pollNow: () => expectations.pollNow([{ company: 'default', reference: 'order 81' }], [0]),
      overdue: () => expected({ state: 'overdue' }),
      overdueUnknown: () => expected({ overdue: 'unknown' }),
      byPoll: () => expected({ fulfilledBy: 'poll' }),
      contradictory: () => expected({ contradictory: true }),
      reference: () => expected({ search: 'order 29999' }),
      ofTransaction: () => expected({ transactionId: 'tx 29999', state: 'fulfilled' }),
    };
    const others: Operations = {
      receive: () => store.receive([event]),
      activity: () => store.activity(60, 1e9),
      claim: () => store.claim({ workerId: worker, wanted: [{ handler: 'book', limit: 20 }] }),
      claimPolls: () => expectations.claimPolls({ limit: 10, leaseMs: 1000 }),
      page: () => expected({}),
      waiting: () => expected({ state: 'waiting' }),
      transaction: () => expected({ search: 'tx 29999' }),
      prefix: () => expected({ search: 'order' }),
      counts: () => expectations.counts(),
    };
    const recorded: [name: string, statements: RecordedStatement[]][] = [];
    for (const [name, operate] of Object.entries({ ...ofFewRows, ...others })) {
      pool.recorded.length = 0;
      await operate();
      const found = pool.recorded.filter(({ text }) => !text.includes('pg_notify'));
      expect(found).not.toEqual([]);
      recorded.push([name, found]);
    }
    const client = await inboxes.openClient();
    const expectFewPages = async (bound: number): Promise<void> => {
      for (const [name, statements] of recorded) {
        // The first call makes the plans, which reads pages too.
        await pagesReadBy(client, statements);
        const read = await pagesReadBy(client, statements);
        expect([name, read < (name in ofFewRows ? 60 : bound), read]).toEqual([name, true, read]);
      }
    };
    // There are no new statistics, so the functions keep their plans for empty tables.
    for (const table of ['event', 'delivery', 'expectation']) {
      await inboxes.query(`ALTER TABLE many.${table} SET (autovacuum_enabled = off)`);
    }
    await expectFewPages(400);
    await fill();
    await expectFewPages(1000);
    await inboxes.query('VACUUM ANALYZE');
    await expectFewPages(400);
  });
});
