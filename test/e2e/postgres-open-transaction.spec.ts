import { describe, expect, it } from '@jest/globals';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../support/postgres/postgres-inboxes.js';
import { eventually } from '../support/time/waiting.js';

const EVENTS = 200;

describe('PostgreSQL with a transaction open elsewhere', () => {
  const inboxes = usePostgresInboxes();

  it('IN-39 receive() does not read the index entries of deliveries that ran before', async () => {
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
});
