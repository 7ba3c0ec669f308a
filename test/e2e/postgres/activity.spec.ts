import { describe, expect, it } from '@jest/globals';
import type {
  ActivityCounts,
  StoredEvent,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';
import { RecordingPool } from '../../support/postgres/recording-pool.js';

describe('activity in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('IN-38 activity() has the same counts as a scan of all events and deliveries', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    const handlers = ['book', 'mail'];
    await store.receive(Array.from({ length: 40 }, (_, n) => incoming(`e${n}`, { handlers })));
    const worker = await startWorker(store);
    const wanted = handlers.map((handler) => ({ handler, limit: 40 }));
    for (let round = 0; round < 3; round += 1) {
      const leases = await store.claim({ worker, wanted });
      await Promise.all(
        leases.map((lease) => {
          if (lease.seq % 3 === 0) return store.complete(lease);
          const retryInMs = lease.seq % 5 === 0 && round === 1 ? null : 0;
          return store.fail(lease, { error: 'no', retryInMs });
        }),
      );
    }
    // Moves the events and their attempts to the last minutes.
    await inboxes.query(`
      UPDATE ${schema}.event SET received_at = received_at - 130000 - seq % 7 * 11000;
      UPDATE ${schema}.delivery d
         SET finished_at = finished_at - shift.s, started_at = started_at - shift.s, failed_at = failed_at - shift.s, history = (
           SELECT jsonb_agg(jsonb_set(x, '{1}', to_jsonb((x ->> 1)::bigint - shift.s)))
             FROM jsonb_array_elements(d.history) x)
        FROM (SELECT event, handler, (120 - event % 13 * 5) * 1000 AS s FROM ${schema}.delivery) shift
       WHERE shift.event = d.event AND shift.handler = d.handler`);
    const { minutes } = await other.activity(1440, 1e9);
    expect(minutes).toHaveLength(1440);
    const scanned: StoredEvent[] = [];
    for (let n = 0; n < 40; n += 1) scanned.push((await store.find('default', `e${n}`))!);
    const counted = minutes.slice(-7).map(({ startsAt }) => ({
      startsAt,
      total: scan(scanned, startsAt, handlers),
      handlers: Object.fromEntries(
        handlers
          .map((handler) => [handler, scan(scanned, startsAt, [handler])] as const)
          .filter(([, { received, done, failed }]) => received + done + failed > 0),
      ),
    }));
    expect(minutes.slice(-7)).toEqual(counted);
    for (const field of ['received', 'done', 'failed', 'dead'] as const) {
      expect(counted.some(({ total }) => total[field] > 0)).toBe(true);
    }
  });

  it('IN-38 activity() reads a range of 2,000 events per statement, of the 100,000 newest', async () => {
    const schema = freshSchema();
    const pool = new RecordingPool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ schema, pool });
    // No statistics: the planner believes that the tables are empty.
    await inboxes.query(`
      ALTER TABLE ${schema}.event SET (autovacuum_enabled = off);
      ALTER TABLE ${schema}.delivery SET (autovacuum_enabled = off);
      INSERT INTO ${schema}.event (seq, company, id, event_type, occurred_at, received_at, digest, stale, unhandled)
      SELECT n, 'default', 'e' || n, 't', 0, ${NOW_MS} - (120000 - n) * 500, '', false, false
        FROM generate_series(1, 120000) n;
      INSERT INTO ${schema}.delivery (event, handler, state, finished_at)
      SELECT seq, 'book', 'done', received_at + 5 FROM ${schema}.event`);
    const client = await inboxes.openClient();
    for (const statistics of ['', 'VACUUM ANALYZE']) {
      if (statistics !== '') await inboxes.query(statistics);
      pool.recorded.length = 0;
      const { minutes, completeFrom } = await store.activity(1440, 1e9);
      expect(minutes.at(-1)!.total).toMatchObject({ received: 120, done: 120, p50Ms: 5, p95Ms: 5 });
      const hours = (minutes.at(-1)!.startsAt.getTime() - completeFrom.getTime()) / 3_600_000;
      expect(hours).toBeCloseTo(50_000 / 3600, 0);
      const reads = pool.recorded.filter(({ text }) => text.includes('delivery'));
      expect(reads).toHaveLength(50);
      const { text, values } = reads.at(-1)!;
      const { rows } = await client.query<Record<string, string>>(`EXPLAIN ${text}`, [...values]);
      const plan = rows.map((row) => row['QUERY PLAN']!);
      expect(plan.filter((line) => line.includes('Seq Scan'))).toEqual([]);
      const conditions = plan.filter((line) => line.includes('Index Cond'));
      expect(conditions.length).toBeGreaterThanOrEqual(6);
      expect(conditions.filter((line) => !/>= '20001'.*< '22001'/.test(line))).toEqual([]);
    }
    await pool.end();
  });
});

/** The expected activity of a minute, from a scan of all events. */
function scan(
  events: readonly StoredEvent[],
  startsAt: Date,
  names: readonly string[],
): ActivityCounts {
  const within = (at: Date | null): boolean =>
    at !== null && at >= startsAt && at.getTime() < startsAt.getTime() + 60_000;
  const all = events.flatMap((event) =>
    event.deliveries
      .filter(({ handler }) => names.includes(handler))
      .map((delivery) => ({ ...delivery, event })),
  );
  const ended = (state: string) =>
    all.filter((delivery) => delivery.state === state && within(delivery.finishedAt));
  const took = ended('done')
    .map(({ event, finishedAt }) => Math.max(0, finishedAt!.getTime() - event.receivedAt.getTime()))
    .toSorted((a, b) => a - b);
  const attempts = all.flatMap(({ history }) => history);
  return {
    received: new Set(
      all.filter(({ event }) => within(event.receivedAt)).map(({ event }) => event.id),
    ).size,
    done: took.length,
    failed: attempts.filter(({ outcome, endedAt }) => outcome !== 'done' && within(endedAt)).length,
    dead: ended('dead').length,
    p50Ms: took[Math.ceil(took.length * 0.5) - 1] ?? null,
    p95Ms: took[Math.ceil(took.length * 0.95) - 1] ?? null,
  };
}
