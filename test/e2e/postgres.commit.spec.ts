import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Transaction } from 'kysely';
import { Pool } from 'pg';
import type { RunTransaction } from '../../libs/payments/src/inbox/postgres/index.js';
import type { ClaimedDelivery, InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { CutProxy } from '../support/cut.proxy.js';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

interface Tables {
  ledger: { id: string; amount: number };
}

describe('context.commit on PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
    await inboxes.query(
      `CREATE TABLE ledger (id text PRIMARY KEY, amount integer NOT NULL,
         CONSTRAINT honest CHECK (amount >= 0), twin text UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
    );
  }, 60_000);
  beforeEach(() => inboxes.query('TRUNCATE ledger'));
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  const booked = (): Promise<unknown[]> =>
    inboxes.query('SELECT id, amount FROM ledger ORDER BY id');
  const insert = (id: string, amount = 5): string =>
    `INSERT INTO ledger (id, amount) VALUES ('${id}', ${amount})`;
  const stateOf = async (store: Pick<InboxStore, 'find'>): Promise<unknown> =>
    (await store.find('default', 'e1'))?.deliveries[0]?.state;
  const leased = async (
    store: Pick<InboxStore, 'receive' | 'claim'>,
    leaseMs = 30_000,
  ): Promise<ClaimedDelivery> => {
    await store.receive([incoming('e1')]);
    return (await claim(store, 1, leaseMs))[0]!;
  };

  it('books and settles in one transaction', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const result = await store.commit(lease, async (tx) => {
      await tx.query('INSERT INTO ledger (id, amount) VALUES ($1, $2)', ['t1', 5]);
      expect(await stateOf(store)).toBe('running');
      return 'receipt';
    });
    expect(result).toBe('receipt');
    expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
    expect(await store.find('default', 'e1')).toMatchObject({
      deliveries: [{ state: 'done', attempts: 1, dueAt: null, finishedAt: expect.any(Date) }],
    });
    expect(await store.complete(lease)).toBe(false);
  });

  it('leaves nothing where the work throws, and hands on what it threw', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const failure = new Error('no such account');
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1'));
      throw failure;
    });
    await expect(committing).rejects.toBe(failure);
    expect(await booked()).toEqual([]);
    expect(await store.fail(lease, { error: 'no such account', retryInMs: 0 })).toBe(true);
  });

  it('runs no work for a lease that was lost', async () => {
    const store = await inboxes.open();
    const lease = await leased(store, 1);
    await inboxes.query('SELECT pg_sleep(0.01)');
    let ran = false;
    const committing = store.commit(lease, () => (ran = true));
    await expect(committing).rejects.toMatchObject({ code: 'lease_lost' });
    expect(ran).toBe(false);
  });

  it('commits what it began in time, though the lease ends meanwhile and others look for work', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    const lease = await leased(store, 1000);
    await store.commit(lease, async (tx) => {
      await tx.query('SELECT pg_sleep(1.01)');
      expect(await claim(other)).toEqual([]);
      await tx.query(insert('t1'));
    });
    expect(await booked()).toHaveLength(1);
    expect(await claim(other)).toEqual([]);
  });

  it('says so where the work hid a statement that failed', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1'));
      await tx.query(insert('t2', -1)).catch(() => 'whatever');
    });
    await expect(committing).rejects.toThrow(/went on after one of its statements had failed/);
    expect(await booked()).toEqual([]);
    expect(await stateOf(store)).toBe('running');
  });

  it('hands on what the database refuses at the commit', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(`INSERT INTO ledger VALUES ('t1', 1, 'twin'), ('t2', 1, 'twin')`);
    });
    await expect(committing).rejects.toMatchObject({ code: '23505' });
    expect(await stateOf(store)).toBe('running');
    expect(await store.complete(lease)).toBe(true);
  });

  it('finds out what became of a COMMIT that was never answered: committed', async () => {
    const [proxy, connectionString] = await CutProxy.before(inboxes.connectionString);
    const store = await inboxes.open({ connectionString });
    const lease = await leased(store);
    try {
      const result = await store.commit(lease, async (tx) => {
        await tx.query(insert('t1'));
        proxy.swallowAnswerTo = (sent) => sent.includes('COMMIT');
        return 'receipt';
      });
      expect(result).toBe('receipt');
      expect(await booked()).toHaveLength(1);
      expect(await stateOf(store)).toBe('done');
    } finally {
      await store.close();
      await proxy.end();
    }
  });

  it('finds out what became of a COMMIT that was never answered: rolled back', async () => {
    const [proxy, connectionString] = await CutProxy.before(inboxes.connectionString);
    const store = await inboxes.open({ connectionString });
    const lease = await leased(store);
    try {
      const committing = store.commit(lease, async (tx) => {
        await tx.query(insert('t1'));
        proxy.cut();
      });
      await expect(committing).rejects.toMatchObject({ code: 'inbox_unavailable' });
      expect(await booked()).toEqual([]);
      expect(await store.complete(lease)).toBe(true);
    } finally {
      await store.close();
      await proxy.end();
    }
  });

  it('leaves the rest of the inbox its connections, however many commits wait', async () => {
    const store = await inboxes.open({ poolSize: 3 });
    await store.receive(['a', 'b', 'c', 'd'].map((id) => incoming(id)));
    const leases = await claim(store);
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const commits = leases.map((lease) => store.commit(lease, () => finished));
    expect(await store.receive([incoming('meanwhile')])).toMatchObject([{ outcome: 'stored' }]);
    expect(await claim(store)).toHaveLength(1);
    finish();
    await Promise.all(commits);
  });

  describe("in an application's own transaction (Kysely)", () => {
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
      expect(await store.commit(lease, (trx) => book(trx).then(() => 'receipt'))).toBe('receipt');
      expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
      expect(await stateOf(store)).toBe('done');
    });

    it('leaves nothing where the work throws', async () => {
      const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
      const lease = await leased(store);
      const failure = new Error('no such account');
      const committing = store.commit(lease, async (trx) => {
        await book(trx);
        throw failure;
      });
      await expect(committing).rejects.toBe(failure);
      expect(await booked()).toEqual([]);
      expect(await store.complete(lease)).toBe(true);
    });

    it('runs no work for a lease that was lost', async () => {
      const store = await inboxes.open<Transaction<Tables>>({ runTransaction });
      const lease = await leased(store);
      await store.release(lease);
      const committing = store.commit(lease, (trx) => book(trx));
      await expect(committing).rejects.toMatchObject({ code: 'lease_lost' });
      expect(await booked()).toEqual([]);
    });

    it('says so where the transaction was rolled back in silence', async () => {
      const pool = new Pool({ connectionString: inboxes.connectionString, max: 1 });
      const careless: RunTransaction = async (work) => {
        const client = await pool.connect();
        await client.query('BEGIN');
        const result = await work({
          tx: client,
          query: (text, values) => client.query(text, values),
        });
        await client.query('COMMIT');
        client.release();
        return result;
      };
      const store = await inboxes.open({ runTransaction: careless });
      const lease = await leased(store);
      const committing = store.commit(lease, async (tx) => {
        await tx.query(insert('t1', -1)).catch(() => 'whatever');
      });
      await expect(committing).rejects.toThrow(/went on after one of its statements had failed/);
      expect(await stateOf(store)).toBe('running');
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
      expect(await store.commit(lease, (trx) => book(trx).then(() => 'receipt'))).toBe('receipt');
    });

    it('tells a runner that calls no work, or answers without rows', async () => {
      const idle = await inboxes.open<null>({ runTransaction: async () => undefined as never });
      await expect(idle.commit(await leased(idle), () => {})).rejects.toThrow(/has not called/);
      const blind = await inboxes.open<null>({
        runTransaction: (work) => work({ tx: null, query: async () => [] }),
      });
      await expect(blind.commit(await leased(blind), () => {})).rejects.toThrow(/with the rows/);
    });
  });
});
