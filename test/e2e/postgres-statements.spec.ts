import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import {
  claim,
  incoming,
  PostgresInboxes,
  startWorker,
} from '../support/postgres/postgres-inboxes.js';

describe('the statements of an inbox in PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  let pool: Pool;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(async () => {
    await inboxes.close();
    await pool?.end();
  });
  afterAll(() => inboxes.server.end(), 30_000);

  /** A pool of one connection, so that a test can ask what that has prepared. */
  const onePool = (): Pool =>
    (pool = new Pool({ connectionString: inboxes.connectionString, max: 1 }));
  const prepared = async (): Promise<string[]> => {
    const { rows } = await pool.query<{ name: string }>('SELECT name FROM pg_prepared_statements');
    return rows.map(({ name }) => name);
  };

  it('are prepared once for each connection, those of every day', async () => {
    const store = await inboxes.open({ pool: onePool(), preparedStatements: true });
    const worker = await startWorker(store);
    const runAll = async (id: string): Promise<void> => {
      await store.receive([incoming(id)]);
      const [lease] = await claim(store, 1, worker);
      await store.complete(lease!);
      await store.nextDueInMs(['book']);
    };
    await runAll('a');
    const names = await prepared();
    // To receive, to claim, to settle, and to ask when the next is due.
    expect(names).toHaveLength(4);
    await runAll('b');
    expect((await prepared()).toSorted()).toEqual(names.toSorted());
  });

  it('are not those of two schemas at once', async () => {
    const options = { pool: onePool(), preparedStatements: true };
    const [one, other] = [await inboxes.open(options), await inboxes.open(options)];
    await one.receive([incoming('a')]);
    await other.receive([incoming('b')]);
    expect(await claim(one)).toMatchObject([{ id: 'a' }]);
    expect(await claim(other)).toMatchObject([{ id: 'b' }]);
  });

  it('are not prepared on a pool of the application that says nothing of it', async () => {
    const store = await inboxes.open({ pool: onePool() });
    await store.receive([incoming('a')]);
    expect((await store.complete((await claim(store))[0]!)).settled).toBe(true);
    expect(await prepared()).toEqual([]);
  });

  it('say what to do where a pooler forgets them, and are prepared again on another connection', async () => {
    const store = await inboxes.open({ pool: onePool(), preparedStatements: true });
    await store.receive([incoming('a')]);
    // What a pooler does that has another connection of the server take over.
    await pool.query('DEALLOCATE ALL');
    const receiving = store.receive([incoming('b')]);
    await expect(receiving).rejects.toMatchObject({ code: 'inbox_unavailable', sqlState: '26000' });
    await expect(receiving).rejects.toThrow(/set "preparedStatements" of postgresInbox to false/);
    expect(await store.receive([incoming('b')])).toMatchObject([{ outcome: 'stored', id: 'b' }]);
  });
});
