import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type {
  ClaimedDelivery,
  InboxStore,
  Lease,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  claim,
  freshSchema,
  idsOf,
  incoming,
  NOW_MS,
  pagesRead,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';
import { types } from 'pg';
import type { Client } from 'pg';
import { RecordingPool } from '../../support/postgres/recording-pool.js';
import { eventually } from '../../support/time/waiting.js';

const inboxes = usePostgresInboxes();

describe('claims in PostgreSQL', () => {
  it('claim() skips rows that another transaction has locked', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3, 4].map(() => inboxes.open({ schema })));
    await stores[0]!.receive(Array.from({ length: 40 }, (_, n) => incoming(`e${n}`)));
    // Each delivery is due at a different time.
    const due = `UPDATE ${schema}.delivery SET due_at = due_at - (99 - event) * 1000`;
    await inboxes.query(due);
    const other = await inboxes.openClient();
    await other.query(`BEGIN; SELECT FROM ${schema}.delivery ORDER BY event LIMIT 20 FOR UPDATE`);
    expect(idsOf(await claim(stores[0]!, 4))).toEqual(['e20', 'e21', 'e22', 'e23']);
    await other.end();
    const claimed = await Promise.all(stores.map((store) => claim(store, 9)));
    expect(new Set(claimed.flatMap(idsOf)).size).toBe(36);
  });

  it('claim() works if the default isolation level of the database is serializable', async () => {
    const [database] = await inboxes.query<{ name: string }>('SELECT current_database() AS name');
    const alter = `ALTER DATABASE ${database!.name}`;
    await inboxes.query(`${alter} SET default_transaction_isolation = 'serializable'`);
    try {
      const store = await inboxes.open();
      await Promise.all(['a', 'b', 'a'].map((id) => store.receive([incoming(id)])));
      expect(idsOf(await claim(store)).toSorted()).toEqual(['a', 'b']);
    } finally {
      await inboxes.query(`${alter} RESET default_transaction_isolation`);
    }
  });

  const SELECTED = { company: 'default', id: 'a', handlers: ['book'] };
  it.each<[string, (store: InboxStore, lease: ClaimedDelivery) => Promise<unknown>]>([
    ['receive', (store) => store.receive([incoming('b')])],
    [
      'claim',
      (store) => store.claim({ workerId: randomUUID(), wanted: [{ handler: 'book', limit: 1 }] }),
    ],
    ['complete', (store, lease) => store.complete(lease)],
    ['skip', (store) => store.skip([SELECTED])],
    ['register', (store) => startWorker(store)],
  ])(
    'IN-16 %s() runs in READ COMMITTED, even if the default isolation level of the database becomes serializable while the process runs',
    async (_name, act) => {
      const pool = new RecordingPool({ connectionString: inboxes.connectionString, max: 1 });
      const store = await inboxes.open({ pool });
      await store.receive([incoming('a')]);
      const [lease] = await claim(store);
      const client = await pool.connect();
      await client.query({ text: "SET default_transaction_isolation = 'serializable'" });
      client.release();
      pool.recorded.length = 0;
      await act(store, lease!);
      const statements = pool.recorded.map(({ text }) => text);
      expect(statements).toContain('BEGIN ISOLATION LEVEL READ COMMITTED');
      await pool.end();
    },
  );

  const one = { company: 'default', id: 'e1', handlers: ['book'] };
  it.each<
    [string, (store: InboxStore) => Promise<unknown>, (store: InboxStore) => Promise<unknown>]
  >([
    ['received event', async () => {}, (store) => store.receive([incoming('e1')])],
    [
      'release',
      (store) => store.receive([incoming('e1')]),
      async (store) => store.release((await claim(store))[0]!),
    ],
    [
      'redrive',
      (store) => store.receive([incoming('e1')]).then(() => store.skip([one])),
      (store) => store.redrive([one], { force: false, dueInMs: [0] }),
    ],
    [
      'serializable commit',
      (store) =>
        store.receive(['e0', 'e1'].map((id) => incoming(id, { orderingKey: 'k' }))).then(() => {}),
      async (store) => {
        const [lease] = await claim(store, 1);
        await store.commit(lease!, async (tx) => {
          await (tx as Client).query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
          await claim(store);
        });
      },
    ],
    [
      'resume',
      (store) => store.receive([incoming('e1')]).then(() => store.pause('book', true)),
      (store) => store.pause('book', false),
    ],
  ])('IN-27 IN-20 a %s in one process wakes the other processes', async (_name, prepare, act) => {
    const schema = freshSchema();
    const options = { schema, pollMs: 60_000 };
    // This store is closed before the test starts, so that none of its notifications arrives late.
    const before = await inboxes.open(options);
    await prepare(before);
    await before.close();
    const [here, there] = [await inboxes.open(options), await inboxes.open(options)];
    let wake = (): void => {};
    const next = (): Promise<void> => new Promise((resolve) => (wake = resolve));
    const listens = next();
    there.onWake(() => wake());
    await listens;
    const woken = next();
    const begun = performance.now();
    await act(here);
    await woken;
    // Without the notification, the other process would look for due deliveries only after 60 s.
    expect(performance.now() - begun).toBeLessThan(30_000);
    expect(await claim(there)).toMatchObject([{ id: 'e1', attempt: 1 }]);
  });

  it('receive() sends no notification if it assigns its deliveries to a worker', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema, pollMs: 60_000 });
    const listener = await inboxes.openClient();
    let notifications = 0;
    listener.on('notification', () => (notifications += 1));
    await listener.query(`LISTEN ${schema}`);
    const worker = await startWorker(store);
    const assign = { workerId: worker, handlers: ['book'] };
    await store.receive([incoming('a', { assign })]);
    await store.close();
    await listener.query('SELECT 1');
    expect(notifications).toBe(0);
  });

  it('IN-39 claims start at a cursor and find every due delivery while another connection has an open transaction', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    const holder = await inboxes.openClient();
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
    // These rows become dead entries at the start of the index that claims read, as after minutes of work.
    await inboxes.query(`
      INSERT INTO ${schema}.delivery (event, handler, state, due_at)
      SELECT -n, 'book', 'pending', ${NOW_MS} - 3600000 + n
        FROM generate_series(1, 150000) n`);
    await inboxes.query(
      `UPDATE ${schema}.delivery SET state = 'skipped', due_at = NULL WHERE event < 0`,
    );
    const reader = await inboxes.openClient();
    const pages = (since: number | null): Promise<number> =>
      pagesRead(
        reader,
        `SELECT * FROM ${schema}.claim('${worker}', '{book}', '{1}', '{${since ?? 'NULL'}}', false)`,
      );
    // The first call makes the plans.
    await pages(null);
    expect(await pages(null)).toBeGreaterThan(1000);
    expect(await pages(Date.now() - 1000)).toBeLessThan(100);
    // The first claim is slow, so the next claims start at the cursor.
    await claim(store, 1, worker);
    await store.receive([incoming('new')]);
    const begun = performance.now();
    expect(idsOf(await claim(store, 1, worker))).toEqual(['new']);
    const [deep] = await inboxes.query<{ event: string }>(`
      WITH e AS (
        INSERT INTO ${schema}.event (company, id, event_type, occurred_at, received_at, digest, raw, stale, unhandled)
        VALUES ('default', 'late', 't', ${NOW_MS}, ${NOW_MS}, '', '{}', false, false) RETURNING seq)
      INSERT INTO ${schema}.delivery (event, handler, state, due_at)
      SELECT seq, 'book', 'pending', ${NOW_MS} - 600000 FROM e RETURNING event`);
    expect(deep).toBeDefined();
    const found: string[] = [];
    while (found.length === 0) found.push(...idsOf(await claim(store, 1, worker)));
    expect(found).toEqual(['late']);
    expect(performance.now() - begun).toBeLessThan(20_000);
  });

  it('the inbox reads its rows correctly if the application has replaced the parsers of the driver', async () => {
    const oids = [16, 17, 20, 23, 25, 114, 701, 1184];
    const before = oids.map((oid) => types.getTypeParser(oid));
    for (const oid of oids) types.setTypeParser(oid, () => 'nonsense');
    try {
      const store = await inboxes.open();
      await store.receive([incoming('e1')]);
      const [lease] = await claim(store);
      expect(lease).toMatchObject({ id: 'e1', attempt: 1 });
      expect(lease!.token).toBeGreaterThan(1e12);
      expect(await store.complete(lease!)).toMatchObject({ settled: true });
      expect((await store.find('default', 'e1'))?.receivedAt.getTime()).toBeGreaterThan(1e12);
    } finally {
      for (const [index, oid] of oids.entries()) types.setTypeParser(oid, before[index]);
    }
  });
});

const EVENTS = 200;

describe('PostgreSQL while another connection has an open transaction', () => {
  it('IN-39 receive() and retire() do not read the index entries of deliveries that have already run', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const assign = { workerId: await startWorker(store), handlers: ['book'] };
    const other = await inboxes.openClient();
    try {
      await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()');
      for (let n = 0; n < EVENTS; n += 1) {
        const [receipt] = await store.receive([incoming(`${n}`, { orderingKey: `${n}`, assign })]);
        await store.complete(receipt!.claimed[0]!);
      }
      // receive() waits while a worker retires.
      await store.retire(assign.workerId, 0);
    } finally {
      await other.end();
    }
    // A connection writes its statistics at the latest when it ends.
    await inboxes.close();
    const read = async (index: string) => {
      const [row] = await inboxes.query(
        `SELECT idx_scan::int AS scans, idx_tup_read::int AS entries FROM pg_stat_user_indexes
          WHERE schemaname = '${schema}' AND indexrelname = '${index}'`,
      );
      return row as { scans: number; entries: number };
    };
    await eventually(async () => expect((await read('delivery_pkey')).scans).toBe(EVENTS));
    expect((await read('delivery_running')).entries).toBeLessThan(EVENTS);
  });

  it('IN-39 if the search for lost deliveries takes too long, heartbeats still succeed, and repeat the search less often', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema, statementTimeoutMs: 1100 });
    const worker = await startWorker(store);
    await inboxes.query(`
      CREATE SEQUENCE ${schema}.searches;
      CREATE OR REPLACE FUNCTION ${schema}.free_lost(p_worker uuid, p_late boolean)
      RETURNS TABLE (o_suspects boolean, o_freed integer) LANGUAGE plpgsql AS
        $$ BEGIN PERFORM nextval('${schema}.searches'), pg_sleep(20); END $$`);
    const [before] = await inboxes.query(`SELECT heartbeat_at FROM ${schema}.worker`);
    const alive = { alive: true, suspects: false };
    expect(await store.heartbeat(worker)).toEqual(alive);
    expect(await store.heartbeat(worker)).toEqual(alive);
    expect(await inboxes.query(`SELECT heartbeat_at FROM ${schema}.worker`)).not.toEqual([before]);
    expect(
      await inboxes.query(`SELECT last_value::int AS searches FROM ${schema}.searches`),
    ).toEqual([{ searches: 1 }]);
  });
});

describe('ordering keys in PostgreSQL', () => {
  it('claim() skips an ordering key that another transaction claims, and leases the delivery of the key later', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('a', { orderingKey: 'k' })]);
    const worker = await startWorker(store);
    const other = await inboxes.openClient();
    await other.query('BEGIN');
    const claiming = await other.query(
      `SELECT o_id FROM ${schema}.claim('${worker}', '{book}', '{9}', '{NULL}', false) WHERE o_id IS NOT NULL`,
    );
    expect(claiming.rows).toEqual([{ o_id: 'a' }]);
    await store.receive([incoming('b', { orderingKey: 'k' })]);
    expect(await claim(store)).toEqual([]);
    const handlers = ['book'];
    const [receipt] = await store.receive([
      incoming('c', { orderingKey: 'k', assign: { workerId: worker, handlers } }),
    ]);
    expect(receipt).toMatchObject({ claimed: [], pending: true });
    await other.query('ROLLBACK');
    expect(idsOf(await claim(store))).toEqual(['a']);
  });

  it('complete() makes a delivery claimable even if a claim marks the delivery as waiting at the same time', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('a', { orderingKey: 'k' })]);
    const [running] = await claim(store);
    await store.receive([incoming('b', { orderingKey: 'k' })]);
    const worker = await startWorker(store);
    const other = await inboxes.openClient();
    await other.query('BEGIN');
    // This claim sees that "a" runs and marks "b" as waiting, but has not committed.
    await other.query(`SELECT FROM ${schema}.claim('${worker}', '{book}', '{9}', '{NULL}', false)`);
    const settling = store.complete(running!);
    const blocked = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
    while ((await inboxes.query(blocked)).length === 0);
    await other.query('COMMIT');
    expect(await settling).toEqual({ settled: true, nextDue: true });
    expect(idsOf(await claim(store))).toEqual(['b']);
  });
});

const SETTLED = { settled: true, nextDue: false };
const LOST = { settled: false, nextDue: false };

describe('outcomes in PostgreSQL', () => {
  async function claimed(...ids: string[]): Promise<{
    schema: string;
    store: InboxStore;
    leases: ClaimedDelivery[];
  }> {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive(ids.map((id) => incoming(id)));
    return { schema, store, leases: await claim(store, ids.length) };
  }

  const stateOf = async (store: InboxStore, id: string) => {
    const { state, attempts, lastError, dueAt, finishedAt, history } = (await store.find(
      'default',
      id,
    ))!.deliveries[0]!;
    const outcomes = history.map(({ attempt, outcome, error }) => [attempt, outcome, error]);
    return [state, attempts, lastError, dueAt !== null, finishedAt !== null, outcomes];
  };

  it('outcomes that arrive at the same time are stored in one transaction', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `e${n}`);
    const { schema, store, leases } = await claimed(...ids);
    const settled = await Promise.all(leases.map((lease) => store.complete(lease)));
    expect(settled).toEqual(leases.map(() => SETTLED));
    const [row] = await inboxes.query<{ transactions: string; done: string }>(
      `SELECT count(DISTINCT xmin::text) AS transactions, count(*) AS done
         FROM ${schema}.delivery WHERE state = 'done'`,
    );
    expect(row).toEqual({ transactions: '1', done: '40' });
  });

  it('complete() and fail() in one statement write the outcome of each delivery', async () => {
    const { store, leases } = await claimed('done', 'again', 'dead', 'stale', 'twice');
    const [done, again, dead, stale, twice] = leases as [ClaimedDelivery, ...ClaimedDelivery[]];
    const results = await Promise.all([
      store.complete(done),
      store.fail(again!, { error: 'later\0', retryInMs: 60_000 }),
      store.fail(dead!, { error: 'never', retryInMs: null }),
      store.complete({ ...stale!, token: stale!.token + 1 }),
      store.complete(twice!),
      store.complete(twice!),
    ]);
    expect(results).toEqual([SETTLED, SETTLED, SETTLED, LOST, SETTLED, LOST]);
    expect(await stateOf(store, 'done')).toEqual([
      'done',
      1,
      null,
      false,
      true,
      [[1, 'done', null]],
    ]);
    expect(await stateOf(store, 'again')).toEqual([
      'pending',
      1,
      'later\0',
      true,
      false,
      [[1, 'failed', 'later\0']],
    ]);
    expect(await stateOf(store, 'dead')).toEqual([
      'dead',
      1,
      'never',
      false,
      true,
      [[1, 'failed', 'never']],
    ]);
    expect(await stateOf(store, 'stale')).toEqual(['running', 1, null, false, false, []]);
    expect(await stateOf(store, 'twice')).toEqual([
      'done',
      1,
      null,
      false,
      true,
      [[1, 'done', null]],
    ]);
  });

  it('complete() resolves while another transaction has locked another delivery of the batch', async () => {
    const { schema, store, leases } = await claimed('locked', 'free');
    const holder = await inboxes.openClient();
    try {
      await holder.query('BEGIN');
      await holder.query(
        `SELECT FROM ${schema}.delivery d JOIN ${schema}.event e ON e.seq = d.event
          WHERE e.id = 'locked' FOR UPDATE OF d`,
      );
      const [locked, free] = leases.map((lease) => store.complete(lease));
      expect(await free).toEqual(SETTLED);
      expect(await stateOf(store, 'locked')).toMatchObject(['running', 1, null, false, false, []]);
      await holder.query('ROLLBACK');
      expect(await locked).toEqual(SETTLED);
    } finally {
      await holder.end();
    }
  });

  it('fail() accepts a delay of any length', async () => {
    const { store, leases } = await claimed('a', 'b');
    const settled = await Promise.all([
      store.fail(leases[0]!, { error: 'no', retryInMs: 1e300 }),
      store.complete(leases[1]!),
    ]);
    expect(settled).toEqual([SETTLED, SETTLED]);
    expect(await store.nextDueInMs(['book'])).toBeGreaterThan(99 * 365 * 24 * 3_600_000);
  });

  it('IN-13 an attempt from before a failover with lost commits settles no delivery that was leased after the failover', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const assign = { workerId: await startWorker(store), handlers: ['book'] };
    const receive = async (id: string): Promise<Lease> => {
      const [receipt] = await store.receive([incoming(id, { assign })]);
      return receipt!.claimed[0]!;
    };
    const lost = await receive('lost');
    await inboxes.query(`
      DELETE FROM ${schema}.event; DELETE FROM ${schema}.delivery;
      SELECT setval('${schema}.event_seq_seq', ${lost.seq}, false), pg_sleep(0.003)`);
    const later = await receive('later');
    expect(later.seq).toBe(lost.seq);
    expect(await store.complete(lost)).toEqual(LOST);
    await expect(store.commit(lost, () => {})).rejects.toMatchObject({ code: 'lease_lost' });
    await store.release(later);
    const [before] = await claim(store);
    await inboxes.query(`
      UPDATE ${schema}.delivery SET state = 'pending', worker = NULL, attempts = 0, due_at = started_at, token = ${later.token};
      SELECT pg_sleep(0.003)`);
    const [after] = await claim(store);
    expect(await store.fail(before!, { error: 'late', retryInMs: 0 })).toEqual(LOST);
    expect(await store.complete(after!)).toEqual(SETTLED);
  });
});
