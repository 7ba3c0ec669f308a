import { describe, expect, it } from '@jest/globals';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

const EVENTS = 200;

describe('PostgreSQL with a transaction open elsewhere', () => {
  const inboxes = usePostgresInboxes();

  it('IN-39 receive() and retire() do not read the index entries of deliveries that ran before', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const assign = { worker: await startWorker(store), handlers: ['book'] };
    const other = await inboxes.openClient();
    try {
      await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()');
      for (let n = 0; n < EVENTS; n += 1) {
        const [receipt] = await store.receive([incoming(`${n}`, { orderingKey: `${n}`, assign })]);
        await store.complete(receipt!.claimed[0]!);
      }
      // Receives wait while a worker retires.
      await store.retire(assign.worker, 0);
    } finally {
      await other.end();
    }
    // A connection writes its statistics when it ends, if not before.
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

  it('IN-39 heartbeats succeed if the search for lost deliveries takes too long, and repeat it less often', async () => {
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
