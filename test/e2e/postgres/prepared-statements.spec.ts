import { afterEach, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import {
  claim,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

const inboxes = usePostgresInboxes();

describe('prepared statements in PostgreSQL', () => {
  let pool: Pool;
  afterEach(async () => {
    await inboxes.close();
    await pool.end();
  });

  /** A pool of one connection, so that a test can read which statements the connection has prepared. */
  const poolOfOne = (): Pool =>
    (pool = new Pool({ connectionString: inboxes.connectionString, max: 1 }));
  const prepared = async (): Promise<string[]> => {
    const { rows } = await pool.query<{ name: string }>('SELECT name FROM pg_prepared_statements');
    return rows.map(({ name }) => name);
  };

  it('each connection prepares the four frequent statements once', async () => {
    const store = await inboxes.open({ pool: poolOfOne(), preparedStatements: true });
    const worker = await startWorker(store);
    const runAll = async (id: string): Promise<void> => {
      await store.receive([incoming(id)]);
      const [lease] = await claim(store, 1, worker);
      await store.complete(lease!);
      await store.nextDueInMs(['book']);
    };
    await runAll('a');
    const names = await prepared();
    // Receive, claim, settle, and the time of the next due delivery.
    expect(names).toHaveLength(4);
    await runAll('b');
    expect((await prepared()).toSorted()).toEqual(names.toSorted());
  });

  it('two schemas on one connection have separate prepared statements', async () => {
    const options = { pool: poolOfOne(), preparedStatements: true };
    const [one, other] = [await inboxes.open(options), await inboxes.open(options)];
    await one.receive([incoming('a')]);
    await other.receive([incoming('b')]);
    expect(await claim(one)).toMatchObject([{ id: 'a' }]);
    expect(await claim(other)).toMatchObject([{ id: 'b' }]);
  });

  it('the inbox prepares no statements on an application pool by default', async () => {
    const store = await inboxes.open({ pool: poolOfOne() });
    await store.receive([incoming('a')]);
    expect((await store.complete((await claim(store))[0]!)).settled).toBe(true);
    expect(await prepared()).toEqual([]);
  });

  it('the error for a lost prepared statement names the option, and the next statement works', async () => {
    const store = await inboxes.open({ pool: poolOfOne(), preparedStatements: true });
    await store.receive([incoming('a')]);
    // The same happens if a connection pooler switches to another connection of the server.
    await pool.query('DEALLOCATE ALL');
    const receiving = store.receive([incoming('b')]);
    await expect(receiving).rejects.toMatchObject({ code: 'inbox_unavailable', sqlState: '26000' });
    await expect(receiving).rejects.toThrow(/set "preparedStatements" of postgresInbox to false/);
    expect(await store.receive([incoming('b')])).toMatchObject([{ outcome: 'stored', id: 'b' }]);
  });
});
