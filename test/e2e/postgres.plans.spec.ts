import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import type { ClaimedDelivery, InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { RECEIVE_TYPES } from '../../libs/payments/src/inbox/postgres/sql/receive.js';
import { claim, incoming, PostgresInboxes, startWorker } from '../support/postgres.inboxes.js';

const BACKLOG = 3000;

/** What a statement reads must not grow with the backlog, whenever the statistics were taken. */
describe('a backlog in PostgreSQL that the statistics do not know', () => {
  let inboxes: PostgresInboxes;
  let store: InboxStore;
  let client: Client;
  let worker: string;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
    store = await inboxes.open({ schema: 'payments' });
    worker = await startWorker(store);
    // A quiet moment: all is finished. No statistics are taken after that.
    await store.receive(Array.from({ length: 2000 }, (_, n) => incoming(`old ${n}`)));
    for (let left = 2000; left > 0;) {
      const leases = await claim(store, 500, worker);
      await Promise.all(leases.map((lease) => store.complete(lease)));
      left -= leases.length;
    }
    await inboxes.query(`VACUUM ANALYZE payments.delivery`);
    await inboxes.query(`ALTER TABLE payments.delivery SET (autovacuum_enabled = off)`);
    const backlog = Array.from({ length: BACKLOG }, (_, n) =>
      incoming(`new ${n}`, { orderingKey: `key ${n % 1500}` }),
    );
    for (let n = 0; n < BACKLOG; n += 500) await store.receive(backlog.slice(n, n + 500));
    client = new Client({ connectionString: inboxes.connectionString });
    await client.connect();
  }, 60_000);
  afterAll(async () => {
    await client.end();
    await inboxes.close();
    await inboxes.server.end();
  }, 30_000);

  /** How many pages it reads, rows included. It is run, and rolled back. */
  const pagesOf = async (text: string, values: (string | string[])[] = []): Promise<number> => {
    await client.query('BEGIN');
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
      values,
    );
    await client.query('ROLLBACK');
    const plan = rows[0]!['QUERY PLAN'][0]!.Plan;
    return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;
  };
  /** The second time: the first makes the plans, and reads the catalogs for them. */
  const pagesAgain = async (text: string, values: (string | string[])[] = []): Promise<number> => {
    await pagesOf(text, values);
    return pagesOf(text, values);
  };

  it('is claimed from without being read', async () => {
    const text = `SELECT * FROM payments.claim('${worker}', '{book}', '{20}', '{NULL}')`;
    expect(await pagesAgain(text)).toBeLessThan(2000);
  });

  it('is settled in without being read', async () => {
    const leases = await claim(store, 20, worker);
    const column = (of: 'seq' | 'token'): string[] => leases.map((lease) => String(lease[of]));
    const text = `SELECT * FROM payments.settle($1::bigint[], array_fill('book'::text, ARRAY[20]), $2::bigint[],
      array_fill('done'::text, ARRAY[20]), array_fill(NULL::text, ARRAY[20]), array_fill(NULL::float8, ARRAY[20]))`;
    expect(await pagesAgain(text, [column('seq'), column('token')])).toBeLessThan(1500);
    const [{ seq, token }] = leases as [ClaimedDelivery, ...ClaimedDelivery[]];
    expect(await pagesAgain(`SELECT payments.finish(${seq}, 'book', ${token})`)).toBeLessThan(100);
  });

  it('is freed from without what live workers run being read', async () => {
    const dead = await startWorker(store);
    await claim(store, 5, dead);
    await claim(store, 1000, worker);
    await inboxes.query(`DELETE FROM payments.worker WHERE id = '${dead}'`);
    expect(await pagesAgain(`SELECT * FROM payments.heartbeat('${worker}')`)).toBeLessThan(500);
  });

  it('is asked when the next is due, and for the next suspect, without being read', async () => {
    const due = `SELECT payments.first_due_ms('book', NULL, NULL)`;
    expect(await pagesAgain(due)).toBeLessThan(100);
    const suspect = `SELECT * FROM payments.claim_suspect('${worker}', '{book}', true)`;
    expect(await pagesAgain(suspect)).toBeLessThan(100);
  });

  it('is counted from indexes', async () => {
    expect(await pagesAgain('SELECT * FROM payments.stats()')).toBeLessThan(BACKLOG);
  });

  it('is redriven and skipped without being read', async () => {
    const one = `ARRAY['default'], ARRAY['new 9'], ARRAY['book']`;
    expect(await pagesAgain(`SELECT payments.skip(${one})`)).toBeLessThan(200);
    const redrive = `SELECT payments.redrive(${one}, ARRAY[0]::float8[], false)`;
    expect(await pagesAgain(redrive)).toBeLessThan(200);
  });

  it('is received into without being read, although the plan was made when there was nearly nothing', async () => {
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
      'float8[]': 'ARRAY[0]::float8[]',
    };
    const text = `SELECT * FROM small.receive(${RECEIVE_TYPES.map((type) => values[type]!).join(', ')})`;
    await pagesOf(text);
    for (let n = 0; n < 5000; n += 500) {
      await small.receive(
        Array.from({ length: 500 }, (_, m) => incoming(`later ${n + m}`, { onceKey: `${n + m}` })),
      );
    }
    expect(await pagesOf(text)).toBeLessThan(200);
    // The same event again: it is known.
    await small.receive([incoming('known', { onceKey: 'known' })]);
    expect(await small.receive([incoming('copy', { onceKey: 'known' })])).toMatchObject([
      { outcome: 'duplicate', id: 'known' },
    ]);
  });
});

describe('a large backlog of one ordering key or one handler in PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  it('IN-33 does not slow down claims of other work', async () => {
    const [empty, full] = [
      await inboxes.open({ schema: 'empty' }),
      await inboxes.open({ schema: 'full' }),
    ];
    // A key whose first delivery runs, and a handler with four times as many.
    await full.receive([incoming('hot', { orderingKey: 'hot' })]);
    await claim(full, 1);
    await inboxes.query(`
      INSERT INTO "full".delivery (event, handler, state, held, due_at, ordering, occurred_at)
      SELECT 1000 + n, 'book', 'pending', true, now(), (SELECT ordering FROM "full".event), now()
        FROM generate_series(1, 60000) n;
      INSERT INTO "full".delivery (event, handler, state, due_at, occurred_at)
      SELECT 1000 + n, 'big', 'pending', now(), now() FROM generate_series(1, 240000) n`);
    const took = async (store: InboxStore, worker: string, n: number): Promise<number> => {
      await store.receive([incoming(`${n}`, { orderingKey: `${n}` })]);
      const begun = performance.now();
      const claimed = await claim(store, 20, worker);
      const ms = performance.now() - begun;
      expect(claimed.map(({ id }) => id)).toEqual([`${n}`]);
      await store.complete(claimed[0]!);
      return ms;
    };
    const workers = [await startWorker(empty), await startWorker(full)];
    const times: [number[], number[]] = [[], []];
    for (let n = 0; n < 200; n += 1) {
      times[0].push(await took(empty, workers[0]!, n));
      times[1].push(await took(full, workers[1]!, n));
    }
    const [inEmpty, inFull] = times.map((all) => all.toSorted((a, b) => a - b)[100]!);
    expect(inFull! / inEmpty!).toBeLessThan(1.5);
    const begun = performance.now();
    await full.stats();
    await full.stats();
    expect((performance.now() - begun) / 2).toBeLessThan(60);
  }, 60_000);
});
