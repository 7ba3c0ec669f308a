import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import {
  DONE,
  leaseValues,
  whereHeld,
} from '../../libs/payments/src/inbox/postgres/lease.statements.js';
import { KEY_TYPES } from '../../libs/payments/src/inbox/postgres/schema.receipts.js';
import type { InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { claim, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

const BACKLOG = 3000;

/** What a statement reads must not grow with the backlog, whatever moment the statistics were taken in. */
describe('a backlog in PostgreSQL that its statistics know nothing of', () => {
  let inboxes: PostgresInboxes;
  let store: InboxStore;
  let client: Client;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
    store = await inboxes.open({ schema: 'payments' });
    // A quiet moment: all is finished. The tables are kept from being looked at again.
    await store.receive(Array.from({ length: 2000 }, (_, n) => incoming(`old ${n}`)));
    for (let left = 2000; left > 0;) {
      const leases = await claim(store, 500);
      await Promise.all(leases.map((lease) => store.complete(lease)));
      left -= leases.length;
    }
    await inboxes.query(`VACUUM ANALYZE payments.deliveries`);
    await inboxes.query(`ALTER TABLE payments.deliveries SET (autovacuum_enabled = off)`);
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

  /** How many pages it looks at, and how many of them are rows it reads: run for real, and rolled back. */
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

  it('is claimed from without being read', async () => {
    const text = `SELECT * FROM payments.claim(ARRAY['book'], 20, 30000)`;
    // The first makes the plan, and reads the catalogues for it.
    await pagesOf(text);
    expect(await pagesOf(text)).toBeLessThan(3000);
  });

  it('is settled in without being read', async () => {
    const [lease] = await claim(store, 1);
    const text = whereHeld('payments', DONE);
    await pagesOf(text, leaseValues(lease!));
    expect(await pagesOf(text, leaseValues(lease!))).toBeLessThan(100);
    expect(await store.complete(lease!)).toBe(true);
  });

  it('is settled in without being read, by many together', async () => {
    const leases = (await claim(store, 20)).map((lease) => leaseValues(lease));
    const [companies, ids, handlers, tokens] = [0, 1, 2, 3].map((n) =>
      leases.map((values) => values[n]!),
    );
    const text = `SELECT * FROM payments.settle($1::text[], $2::text[], $3::text[], $4::bigint[],
      array_fill('done'::text, ARRAY[20]), NULL, NULL)`;
    const values = [companies!, ids!, handlers!, tokens!];
    await pagesOf(text, values);
    expect(await pagesOf(text, values)).toBeLessThan(1000);
  });

  it('is asked when the next is due without being read', async () => {
    const text = `SELECT payments.next_due_in_ms(ARRAY['book'])`;
    await pagesOf(text);
    expect(await pagesOf(text)).toBeLessThan(100);
  });

  it('is received into without being read, though the plan was made when there was nearly nothing', async () => {
    const small = await inboxes.open({ schema: 'small' });
    for (let n = 0; n < 10; n += 1) await small.receive([incoming(`first ${n}`)]);
    await inboxes.query('VACUUM ANALYZE small.events');
    await inboxes.query('ALTER TABLE small.events SET (autovacuum_enabled = off)');
    const none = (types: readonly string[]): string =>
      types.map((type) => `ARRAY['x']::text[]::${type}`).join(', ');
    const known = `SELECT * FROM small.known(${none(KEY_TYPES)})`;
    const receive = `SELECT * FROM small.receive(ARRAY['c'], ARRAY['an id'], ARRAY[NULL]::bytea[], ARRAY['t'],
      ARRAY[0]::float8[], ARRAY[NULL], ARRAY[NULL]::uuid[], ARRAY['d']::bytea[], ARRAY['{}']::bytea[],
      ARRAY[false], ARRAY[false], ARRAY[NULL], ARRAY['k']::bytea[], ARRAY[NULL], ARRAY[1], ARRAY['book'])`;
    for (const text of [known, receive]) await pagesOf(text);
    for (let n = 0; n < 5000; n += 500) {
      await small.receive(Array.from({ length: 500 }, (_, m) => incoming(`later ${n + m}`)));
    }
    for (const text of [known, receive]) expect(await pagesOf(text)).toBeLessThan(100);
  });
});
