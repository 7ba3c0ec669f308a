import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { TcpProxy } from '../../chaos/tcp-proxy.ts';
import {
  claim,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Transaction } from 'kysely';
import { Pool } from 'pg';
import type {
  ClaimedDelivery,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import type { RunTransaction } from '../../../libs/payments/src/stores/postgres/index.js';

/** The result of a settle that had no next delivery to make claimable. */
const SETTLED = { settled: true, nextDue: false };

const inboxes = usePostgresInboxes();
beforeAll(() =>
  inboxes.query(
    `CREATE TABLE ledger (id text PRIMARY KEY, amount integer NOT NULL,
       CONSTRAINT honest CHECK (amount >= 0), twin text UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
  ),
);
beforeEach(() => inboxes.query('TRUNCATE ledger'));

/** The stored effects. */
const booked = () => inboxes.query('SELECT id, amount FROM ledger ORDER BY id');

/** A statement that stores an effect. */
const insert = (id: string, amount = 5): string =>
  `INSERT INTO ledger (id, amount) VALUES ('${id}', ${amount})`;

/** The state of the only delivery of the event `e1`. */
const stateOf = async (store: Pick<InboxStore, 'find'>): Promise<unknown> =>
  (await store.find('default', 'e1'))?.deliveries[0]?.state;

/** Receives the event `e1` and claims its delivery. */
async function leased(
  store: Pick<InboxStore, 'receive' | 'claim' | 'register'>,
): Promise<ClaimedDelivery> {
  await store.receive([incoming('e1', { orderingKey: 'k' })]);
  return (await claim(store, 1))[0]!;
}

/** The default of "poolSize". */
const POOL_SIZE = 12;

describe('context.commit in PostgreSQL', () => {
  it('IN-13 context.commit rolls back if the lease is lost while its function runs', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1'));
      await store.release(lease);
    });
    await expect(committing).rejects.toMatchObject({ code: 'lease_lost' });
    expect(await booked()).toEqual([]);
    expect(await stateOf(store)).toBe('pending');
  });

  it('IN-16 context.commit locks no row while its function runs, and then makes the next delivery of the ordering key claimable', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    await store.receive([incoming('e2', { orderingKey: 'k' })]);
    const committed = await store.commit(lease, async () => {
      expect(await claim(store)).toEqual([]);
      const selection = { company: 'default', id: 'e1', handlers: ['book'] };
      expect(await store.redrive([selection], { force: true, dueInMs: [0] })).toBe(0);
      expect(await store.skip([selection])).toBe(0);
    });
    expect(committed.nextDue).toBe(true);
    expect(await claim(store)).toMatchObject([{ id: 'e2' }]);
  });

  it.each(['repeatable read', 'serializable'])(
    'a commit with the isolation level %s makes a delivery claimable, even if the delivery began to wait after the snapshot of the commit',
    async (isolation) => {
      const store = await inboxes.open();
      const lease = await leased(store);
      await store.receive([incoming('e2', { orderingKey: 'k' })]);
      const committed = await store.commit(lease, async (tx) => {
        await tx.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
        await tx.query(insert('t1'));
        // This claim marks the next delivery as waiting, after the snapshot of the transaction.
        expect(await claim(store)).toEqual([]);
      });
      expect(committed.nextDue).toBe(true);
      expect(await claim(store)).toMatchObject([{ id: 'e2' }]);
    },
  );

  it('IN-16 if a process exits after a serializable commit and before it has made the next delivery claimable, a heartbeat does this', async () => {
    const store = await inboxes.open({ schema: 'ended' });
    const { seq, handler, token } = await leased(store);
    await store.receive([incoming('e2', { orderingKey: 'k' })]);
    const client = await inboxes.openClient();
    await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1');
    expect(await claim(store)).toEqual([]);
    await client.query('SELECT ended.finish($1, $2, $3)', [seq, handler, token]);
    await client.query('COMMIT');
    expect(await claim(store)).toEqual([]);
    const beat = async () => store.heartbeat(await startWorker(store));
    const hash = 'hashtextextended(ordering::text || handler, 0)';
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${hash}) FROM ended.unreleased`);
    // Neither the locked key nor the locked row of another key delays a heartbeat.
    await inboxes.query("INSERT INTO ended.unreleased VALUES (gen_random_uuid(), 'book')");
    await client.query('SELECT FROM ended.unreleased FOR UPDATE');
    await beat();
    expect(await claim(store)).toEqual([]);
    await client.query('ROLLBACK');
    await beat();
    expect(await claim(store)).toMatchObject([{ id: 'e2' }]);
    expect(await inboxes.query('SELECT FROM ended.unreleased')).toEqual([]);
  });

  it('context.commit rejects if its function catches the error of a statement', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1'));
      await tx.query(insert('t2', -1)).catch(() => {});
    });
    await expect(committing).rejects.toThrow(/continued after one of its statements had failed/);
    expect(await booked()).toEqual([]);
    expect(await stateOf(store)).toBe('running');
  });

  it.each([['ROLLBACK'], ['ROLLBACK', 'BEGIN'], ['COMMIT', 'BEGIN']])(
    'context.commit rejects and settles nothing if its function runs %s',
    async (...statements) => {
      const store = await inboxes.open();
      const lease = await leased(store);
      const committing = store.commit(lease, async (tx) => {
        for (const statement of statements) await tx.query(statement);
        await tx.query('SAVEPOINT own').catch(() => {});
      });
      await expect(committing).rejects.toThrow(/ran COMMIT or ROLLBACK/);
      expect(await stateOf(store)).toBe('running');
      // The pool can use the connection again.
      await store.commit(lease, (tx) => tx.query(insert('t1')));
      expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
      expect(await stateOf(store)).toBe('done');
    },
  );

  it('context.commit rejects with the database error of the COMMIT', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(`INSERT INTO ledger VALUES ('t1', 1, 'twin'), ('t2', 1, 'twin')`);
    });
    await expect(committing).rejects.toMatchObject({ code: '23505' });
    expect(await stateOf(store)).toBe('running');
    expect(await store.complete(lease)).toEqual(SETTLED);
  });

  it('context.commit resolves if the connection is cut after the server committed', async () => {
    const [proxy, connectionString] = await TcpProxy.before(inboxes.connectionString);
    const store = await inboxes.open({ connectionString });
    const lease = await leased(store);
    try {
      const result = await store.commit(lease, async (tx) => {
        await tx.query(insert('t1'));
        proxy.cutAfter = (sent) => sent.includes('COMMIT');
        return 'receipt';
      });
      expect(result).toEqual({ result: 'receipt', nextDue: false });
      expect(await booked()).toHaveLength(1);
      expect(await stateOf(store)).toBe('done');
    } finally {
      await store.close();
      await proxy.close();
    }
  });

  it('context.commit rejects if the connection is cut before the COMMIT', async () => {
    const [proxy, connectionString] = await TcpProxy.before(inboxes.connectionString);
    const store = await inboxes.open({ connectionString });
    const lease = await leased(store);
    try {
      const committing = store.commit(lease, async (tx) => {
        await tx.query(insert('t1'));
        proxy.cut();
      });
      await expect(committing).rejects.toMatchObject({ code: 'inbox_unavailable' });
      expect(await booked()).toEqual([]);
      expect(await store.complete(lease)).toEqual(SETTLED);
    } finally {
      await store.close();
      await proxy.close();
    }
  });

  it('IN-31 eight open commits leave connections for receive() with the default options', async () => {
    const store = await inboxes.open();
    const worker = await startWorker(store);
    // There is one commit for each connection of the pool. Without a limit, the commits would use all connections.
    await store.receive(Array.from({ length: POOL_SIZE }, (_, n) => incoming(`c${n}`)));
    const leases = await claim(store, POOL_SIZE, worker);
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => (finish = resolve));
    let open = 0;
    let allOpen = (): void => {};
    const eight = new Promise<void>((resolve) => (allOpen = resolve));
    const commits = leases.map((lease) =>
      store.commit(lease, async (tx) => {
        await tx.query(insert(lease.id));
        if ((open += 1) === 8) allOpen();
        await finished;
      }),
    );
    await eight;
    const busy = { on: true };
    // Other operations that need connections at the same time.
    const others = [() => store.stats(), () => store.heartbeat(worker), () => claim(store)].map(
      async (work) => {
        while (busy.on) await work();
      },
    );
    for (let n = 0; n < 50; n += 1) {
      // No commit ends before the last receive, so a receive that needed a connection of a commit would reject.
      expect(await store.receive([incoming(`r${n}`)])).toMatchObject([{ outcome: 'stored' }]);
    }
    busy.on = false;
    expect(open).toBe(8);
    finish();
    await Promise.all([...commits, ...others]);
    expect(await booked()).toHaveLength(POOL_SIZE);
  });
});

interface Tables {
  ledger: { id: string; amount: number };
}

describe('context.commit with runTransaction (Kysely)', () => {
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

  it('context.commit stores nothing if its function throws', async () => {
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
    ['runTransaction rolls back without an error', 'ROLLBACK', 5],
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

  it('context.commit resolves if runTransaction rejects after it has committed', async () => {
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

  it('context.commit rejects if runTransaction does not call the function of the commit or returns no rows', async () => {
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
