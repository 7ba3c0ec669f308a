import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Transaction } from 'kysely';
import { Pool } from 'pg';
import type { RunTransaction } from '../../libs/payments/src/inbox/postgres/index.js';
import {
  createLedger,
  insert,
  leased,
  ledgerEntries,
  SETTLED,
  stateOf,
} from '../support/postgres/ledger.js';
import { PostgresInboxes } from '../support/postgres/postgres-inboxes.js';

interface Tables {
  ledger: { id: string; amount: number };
}

describe('context.commit in a transaction of the application (Kysely)', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
    await createLedger(inboxes);
  }, 60_000);
  beforeEach(() => inboxes.query('TRUNCATE ledger'));
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

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

  it('books and settles', async () => {
    const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
    const lease = await leased(store);
    expect(await store.commit(lease, (trx) => book(trx).then(() => 'receipt'))).toMatchObject({
      result: 'receipt',
    });
    expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
    expect(await stateOf(store)).toBe('done');
  });

  it('stores nothing if the work throws', async () => {
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

  it('stores nothing if the lease was lost', async () => {
    const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
    const lease = await leased(store);
    await store.release(lease);
    const committing = store.commit(lease, (trx) => book(trx));
    await expect(committing).rejects.toMatchObject({ code: 'lease_lost' });
    expect(await booked()).toEqual([]);
  });

  it.each([
    ['hides the error of a statement', 'COMMIT', -1],
    ['rolls back without an error', 'ROLLBACK', 5],
  ])('rejects if the work or its runner %s', async (_case, end, amount) => {
    const pool = new Pool({ connectionString: inboxes.connectionString, max: 1 });
    const careless: RunTransaction = async (work) => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        return await work({ tx: client, query: (text, values) => client.query(text, values) });
      } finally {
        await client.query(end);
        client.release();
      }
    };
    const store = await inboxes.open({ runTransaction: careless });
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1', amount)).catch(() => 'whatever');
    });
    await expect(committing).rejects.toThrow(/went on after one of its statements had failed/);
    expect(await stateOf(store)).toBe('running');
    expect(await booked()).toEqual([]);
    await pool.end();
  });

  it('finds out that a commit whose answer was lost has happened', async () => {
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

  it('rejects a runner that does not call the work, or returns no rows', async () => {
    const idle = await inboxes.open<null>({ runTransaction: async () => undefined as never });
    await expect(idle.commit(await leased(idle), () => {})).rejects.toThrow(/has not called/);
    const blind = await inboxes.open<null>({
      runTransaction: (work) => work({ tx: null, query: async () => [] }),
    });
    await expect(blind.commit(await leased(blind), () => {})).rejects.toThrow(/with the rows/);
  });
});
