import { describe, expect, it } from '@jest/globals';
import {
  claim,
  freshSchema,
  incoming,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';
import { TURNED_OFF } from '../../../libs/payments/src/stores/postgres/sql/postgres-sql.js';
import { RecordingPool } from '../../support/postgres/recording-pool.js';

/** The number of old events that one statement reads. */
const SLICE = 1000;
const UNFINISHED = 16 * SLICE;

/** A node of a plan, as `EXPLAIN (ANALYZE, FORMAT JSON)` reports it. */
interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Returns how many table rows the plan read. */
function rowsRead(node: PlanNode): number {
  const inner = (node.Plans ?? []).reduce((sum, plan) => sum + rowsRead(plan), 0);
  if (node['Relation Name'] === undefined) return inner;
  const rows = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
  return inner + Math.round(rows * node['Actual Loops']);
}

describe('pruning in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('IN-26 prune() finds finished events behind many old dead letters, and reads 1,000 events at a time', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const pool = new RecordingPool({ connectionString: inboxes.connectionString, max: 1 });
    const pruning = await inboxes.open({ schema, pool });
    await inboxes.query(`
      WITH old AS (
        INSERT INTO ${schema}.event (company, id, event_type, occurred_at, received_at, digest, raw, stale, unhandled)
        SELECT 'default', 'dead ' || n, 'x', 0, ${NOW_MS} - 172800000, '', '', false, false
          FROM generate_series(1, ${UNFINISHED}) n RETURNING seq)
      INSERT INTO ${schema}.delivery (event, handler, state)
      SELECT seq, 'gone', 'dead' FROM old`);
    await inboxes.query(`ANALYZE ${schema}.event, ${schema}.delivery`);
    await store.receive(['a', 'b', 'c'].map((id) => incoming(id)));
    for (const lease of await claim(store)) await store.complete(lease);
    await inboxes.query(
      `UPDATE ${schema}.event SET received_at = ${NOW_MS} - 86400000 WHERE id IN ('a', 'b', 'c')`,
    );
    pool.recorded.length = 0;
    const request = { bodiesMs: 3_600_000, tombstonesMs: 1e9 };
    expect(await pruning.prune({ ...request, limit: 1 })).toBe(1);
    expect(await pruning.prune({ ...request, limit: 1 })).toBe(1);
    await store.skip([{ company: 'default', id: 'dead 7', handlers: ['gone'] }]);
    expect(await pruning.prune({ ...request, limit: 10 })).toBe(2);
    expect(await pruning.prune({ ...request, limit: 10 })).toBe(0);
    const isPruned = async (id: string) => (await store.find('default', id))!.raw === null;
    expect(await Promise.all(['a', 'b', 'c', 'dead 7', 'dead 8'].map(isPruned))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    const statements = [...pool.recorded];
    await pool.end();
    const reads = statements.filter(({ text }) => text.includes('"isFinal"'));
    // The first call reads all events, and the other calls read the kept events slice by slice.
    const ofKept = reads.filter(({ text }) => text.includes('.kept'));
    expect([reads.length - ofKept.length, ofKept.length]).toEqual([UNFINISHED / SLICE + 5, 2]);
    expect(await inboxes.query(`SELECT count(*)::integer AS count FROM ${schema}.kept`)).toEqual([
      { count: UNFINISHED - 1 },
    ]);
    expect(Math.max(...statements.map(({ rows }) => rows))).toBe(SLICE);
    await inboxes.query(`UPDATE ${schema}.meta SET pruned_to = 0`);
    const client = await inboxes.openClient();
    // The store uses these settings in each transaction with statements that both databases run.
    for (const name of TURNED_OFF) await client.query(`SET ${name} = off`);
    const read: number[] = [];
    for (const { text, values } of reads) {
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
        values,
      );
      read.push(rowsRead(rows[0]!['QUERY PLAN'][0]!.Plan));
    }
    // For each event, a statement reads three rows: the number, the event and the delivery.
    expect(Math.max(...read)).toBe(3 * SLICE);
  });

  it('IN-07 prune() finds an event that was committed after events with higher numbers', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const add = (seq: number, age: string) =>
      inboxes.query(`
        INSERT INTO ${schema}.event (seq, company, id, event_type, occurred_at, received_at, digest, raw, stale, unhandled)
        VALUES (${seq}, 'default', 'e${seq}', 'x', 0, ${NOW_MS} - (extract(epoch FROM interval '${age}') * 1000)::bigint, '', '', false, false)`);
    const prune = () => store.prune({ bodiesMs: 1000, tombstonesMs: 1e9, limit: 10 });
    await add(1, '1 hour');
    await add(4, '10 s');
    expect(await prune()).toBe(2);
    await add(3, '10 s');
    expect(await prune()).toBe(1);
    expect(await inboxes.query(`SELECT pruned_to FROM ${schema}.meta`)).toEqual([
      { pruned_to: '1' },
    ]);
    expect(await prune()).toBe(0);
  });

  it('redrive() and prune() that run at the same time never act on the same event', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    for (let round = 0; round < 25; round += 1) {
      const selection = { company: 'default', id: `r${round}`, handlers: ['book'] };
      await store.receive([incoming(selection.id)]);
      const [lease] = await claim(store);
      await store.complete(lease!);
      await inboxes.query('SELECT pg_sleep(0.003)');
      const [redriven] = await Promise.all([
        store.redrive([selection], { force: true, dueInMs: [0] }),
        other.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 }),
      ]);
      const left = await claim(store);
      expect(left).toHaveLength(redriven);
      for (const again of left) expect((await store.complete(again)).settled).toBe(true);
    }
  });
});
