import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Transaction } from 'kysely';
import { Pool } from 'pg';
import type { RunTransaction } from '../../../libs/payments/src/stores/postgres/index.js';
import {
  createLedger,
  insert,
  leased,
  ledgerEntries,
  SETTLED,
  stateOf,
} from '../../support/postgres/ledger.js';
import { usePostgresInboxes } from '../../support/postgres/postgres-inboxes.js';

interface Tables {
  ledger: { id: string; amount: number };
}

describe('context.commit with runTransaction (Kysely)', () => {
  const inboxes = usePostgresInboxes();
  beforeAll(() => createLedger(inboxes));
  beforeEach(() => inboxes.query('TRUNCATE ledger'));

  const booked = () => ledgerEntries(inboxes);

  let db: Kysely<Tables>;
  beforeAll(() => {
    const pool = new Pool({ connectionString: inboxes.connectionString });
    pool.on('error', () => {});
    db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  });
  afterAll(() => db.destroy());

  const runTransaction: RunTransaction = (work) =>
    db.transaction().execute((trx) =>
      work({
        tx: trx,
        query: (text, values) => trx.executeQuery(CompiledQuery.raw(text, values)),
      }),
    );
  const book = (trx: Transaction<Tables>, amount = 5): Promise<unknown> =>
    trx.insertInto('ledger').values({ id: 't1', amount }).execute();

  it('context.commit stores the effect and completes the delivery in one transaction', async () => {
    const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
    const lease = await leased(store);
    expect(await store.commit(lease, (trx) => book(trx).then(() => 'receipt'))).toMatchObject({
      result: 'receipt',
    });
    expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
    expect(await stateOf(store)).toBe('done');
  });

  it('context.commit stores nothing if the work throws', async () => {
    const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
    const lease = await leased(store);
    const failure = new Error('no such account');
    const committing = store.commit(lease, async (trx) => {
      await book(trx);
      throw failure;
    });
    await expect(committing).rejects.toBe(failure);
    expect(await booked()).toEqual([]);
    expect(await store.complete(lease)).toEqual(SETTLED);
  });

  it('context.commit stores nothing if the lease was lost', async () => {
    const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
    const lease = await leased(store);
    await store.release(lease);
    const committing = store.commit(lease, (trx) => book(trx));
    await expect(committing).rejects.toMatchObject({ code: 'lease_lost' });
    expect(await booked()).toEqual([]);
  });

  it.each([
    ['the work catches the error of a statement', 'COMMIT', -1],
    ['the runner rolls back without an error', 'ROLLBACK', 5],
  ])('context.commit rejects if %s', async (_case, end, amount) => {
    const pool = new Pool({ connectionString: inboxes.connectionString, max: 1 });
    const runner: RunTransaction = async (work) => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        return await work({ tx: client, query: (text, values) => client.query(text, values) });
      } finally {
        await client.query(end);
        client.release();
      }
    };
    const store = await inboxes.open({ runTransaction: runner });
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1', amount)).catch(() => {});
    });
    await expect(committing).rejects.toThrow(/continued after one of its statements had failed/);
    expect(await stateOf(store)).toBe('running');
    expect(await booked()).toEqual([]);
    await pool.end();
  });

  it('context.commit resolves if the runner rejects after it committed', async () => {
    const store = await inboxes.open<Transaction<Tables>>({
      runTransaction: async (work) => {
        await runTransaction(work);
        throw new Error('connection cut');
      },
    });
    const lease = await leased(store);
    expect(await store.commit(lease, (trx) => book(trx).then(() => 'receipt'))).toMatchObject({
      result: 'receipt',
    });
  });

  it('context.commit rejects if runTransaction does not call the work or returns no rows', async () => {
    const idle = await inboxes.open<null>({ runTransaction: async () => undefined as never });
    await expect(idle.commit(await leased(idle), () => {})).rejects.toThrow(/has not called/);
    const withoutRows = await inboxes.open<null>({
      runTransaction: (work) => work({ tx: null, query: async () => [] }),
    });
    await expect(withoutRows.commit(await leased(withoutRows), () => {})).rejects.toThrow(
      /with the rows/,
    );
  });
});
