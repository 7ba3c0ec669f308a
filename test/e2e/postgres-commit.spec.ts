import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CutProxy } from '../support/postgres/cut-proxy.js';
import {
  createLedger,
  insert,
  leased,
  ledgerEntries,
  LOST,
  SETTLED,
  stateOf,
} from '../support/postgres/ledger.js';
import {
  claim,
  incoming,
  PostgresInboxes,
  startWorker,
} from '../support/postgres/postgres-inboxes.js';

/** The default of "poolSize". */
const POOL_SIZE = 12;

describe('context.commit on PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
    await createLedger(inboxes);
  }, 60_000);
  beforeEach(() => inboxes.query('TRUNCATE ledger'));
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  const booked = () => ledgerEntries(inboxes);

  it('books and settles in one transaction', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const result = await store.commit(lease, async (tx) => {
      await tx.query('INSERT INTO ledger (id, amount) VALUES ($1, $2)', ['t1', 5]);
      expect(await stateOf(store)).toBe('running');
      return 'receipt';
    });
    expect(result).toEqual({ result: 'receipt', nextDue: false });
    expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
    expect(await store.find('default', 'e1')).toMatchObject({
      deliveries: [{ state: 'done', attempts: 1, dueAt: null, finishedAt: expect.any(Date) }],
    });
    expect(await store.complete(lease)).toEqual(LOST);
  });

  it('stores nothing if the work throws, and rejects with its error', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const failure = new Error('no such account');
    const committing = store.commit(lease, async (tx) => {
      await tx.query(insert('t1'));
      throw failure;
    });
    await expect(committing).rejects.toBe(failure);
    expect(await booked()).toEqual([]);
    expect(await store.fail(lease, { error: 'no such account', retryInMs: 0 })).toEqual(SETTLED);
  });

  it('IN-13 rolls back if the lease was lost while the work ran', async () => {
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

  it('IN-16 locks no row of the inbox while the work runs, and releases the next of its key', async () => {
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
    'releases what is held while a transaction runs that is %s',
    async (isolation) => {
      const store = await inboxes.open();
      const lease = await leased(store);
      await store.receive([incoming('e2', { orderingKey: 'k' })]);
      const committed = await store.commit(lease, async (tx) => {
        await tx.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
        await tx.query(insert('t1'));
        // After the snapshot of the transaction.
        expect(await claim(store)).toEqual([]);
      });
      expect(committed.nextDue).toBe(true);
      expect(await claim(store)).toMatchObject([{ id: 'e2' }]);
    },
  );

  it('rejects if the work hid the error of a statement', async () => {
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

  it.each([['ROLLBACK'], ['ROLLBACK', 'BEGIN'], ['COMMIT', 'BEGIN']])(
    'rejects and settles nothing if the work runs %s',
    async (...statements) => {
      const store = await inboxes.open();
      const lease = await leased(store);
      const committing = store.commit(lease, async (tx) => {
        for (const statement of statements) await tx.query(statement);
        await tx.query('SAVEPOINT own').catch(() => {});
      });
      await expect(committing).rejects.toThrow(/ran COMMIT or ROLLBACK/);
      expect(await stateOf(store)).toBe('running');
      // The connection is as it was.
      await store.commit(lease, (tx) => tx.query(insert('t1')));
      expect(await booked()).toEqual([{ id: 't1', amount: 5 }]);
      expect(await stateOf(store)).toBe('done');
    },
  );

  it('rejects with the error of the database at the commit', async () => {
    const store = await inboxes.open();
    const lease = await leased(store);
    const committing = store.commit(lease, async (tx) => {
      await tx.query(`INSERT INTO ledger VALUES ('t1', 1, 'twin'), ('t2', 1, 'twin')`);
    });
    await expect(committing).rejects.toMatchObject({ code: '23505' });
    expect(await stateOf(store)).toBe('running');
    expect(await store.complete(lease)).toEqual(SETTLED);
  });

  it('finds out the outcome of a COMMIT without an answer: committed', async () => {
    const [proxy, connectionString] = await CutProxy.before(inboxes.connectionString);
    const store = await inboxes.open({ connectionString });
    const lease = await leased(store);
    try {
      const result = await store.commit(lease, async (tx) => {
        await tx.query(insert('t1'));
        proxy.swallowAnswerTo = (sent) => sent.includes('COMMIT');
        return 'receipt';
      });
      expect(result).toEqual({ result: 'receipt', nextDue: false });
      expect(await booked()).toHaveLength(1);
      expect(await stateOf(store)).toBe('done');
    } finally {
      await store.close();
      await proxy.end();
    }
  });

  it('finds out the outcome of a COMMIT without an answer: rolled back', async () => {
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
      expect(await store.complete(lease)).toEqual(SETTLED);
    } finally {
      await store.close();
      await proxy.end();
    }
  });

  it('IN-31 leaves connections to receives while eight commits are open, at the default settings', async () => {
    const store = await inboxes.open();
    const worker = await startWorker(store);
    // As many as the pool has connections: without a bound, these commits would take all of them.
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
    // What else needs connections meanwhile.
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
