import { describe, expect, it } from '@jest/globals';
import {
  freshSchema,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';
import { RecordingPool } from '../../support/postgres/recording-pool.js';

describe('activity in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('IN-38 activity() reads the 100,000 newest events in statements of 2,000 events each, and does not read the errors of attempts', async () => {
    const schema = freshSchema();
    const pool = new RecordingPool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ schema, pool });
    // Without statistics, the planner assumes that the tables are empty.
    await inboxes.query(`
      ALTER TABLE ${schema}.event SET (autovacuum_enabled = off);
      ALTER TABLE ${schema}.delivery SET (autovacuum_enabled = off);
      INSERT INTO ${schema}.event (seq, company, id, event_type, occurred_at, received_at, digest, stale, unhandled)
      SELECT n, 'default', 'e' || n, 't', 0, ${NOW_MS} - (120000 - n) * 500, '', false, false
        FROM generate_series(1, 120000) n;
      INSERT INTO ${schema}.delivery (event, handler, state, finished_at, failed_at, history)
      SELECT seq, 'book', 'done', received_at + 5, received_at + 2,
             jsonb_build_array(jsonb_build_array(1, received_at, 2, 'f', 'a long error')) FROM ${schema}.event`);
    const client = await inboxes.openClient();
    for (const statistics of ['', 'VACUUM ANALYZE']) {
      if (statistics !== '') await inboxes.query(statistics);
      pool.recorded.length = 0;
      const { minutes, completeFrom } = await store.activity(1440, 1e9);
      const times = { p50Ms: 5, p95Ms: 5 };
      expect(minutes.at(-1)!.total).toMatchObject({
        received: 120,
        done: 120,
        failed: 120,
        ...times,
      });
      const hours = (minutes.at(-1)!.startsAt.getTime() - completeFrom.getTime()) / 3_600_000;
      expect(hours).toBeCloseTo(50_000 / 3600, 0);
      const reads = pool.recorded.filter(({ text }) => text.includes('delivery'));
      expect(reads).toHaveLength(50);
      const { text, values } = reads.at(-1)!;
      const { rows } = await client.query<Record<string, string>>(`EXPLAIN ${text}`, [...values]);
      const counted = await client.query(text, [...values]);
      expect(counted.rows).toHaveLength(2000);
      expect(JSON.stringify(counted.rows)).not.toContain('a long error');
      const plan = rows.map((row) => row['QUERY PLAN']!);
      expect(plan.filter((line) => line.includes('Seq Scan'))).toEqual([]);
      const conditions = plan.filter((line) => line.includes('Index Cond'));
      expect(conditions).not.toEqual([]);
      expect(conditions.filter((line) => !/>= '20001'.*< '22001'/.test(line))).toEqual([]);
    }
    await pool.end();
  });
});
