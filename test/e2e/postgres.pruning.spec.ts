import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  claim,
  freshSchema,
  incoming,
  PostgresInboxes,
} from '../support/postgres/postgres-inboxes.js';

const UNFINISHED = 80_000;

describe('pruning an inbox in PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  it('IN-26 prunes what comes after many old dead letters, with statements of bounded length', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const pruning = await inboxes.open({ schema, statementTimeoutMs: 200 });
    await inboxes.query(`
      WITH old AS (
        INSERT INTO ${schema}.event (company, id, event_type, occurred_at, received_at, digest, raw, stale, unhandled)
        SELECT 'default', 'dead ' || n, 'x', now(), now() - interval '2 days', '', '', false, false
          FROM generate_series(1, ${UNFINISHED}) n RETURNING seq, occurred_at)
      INSERT INTO ${schema}.delivery (event, handler, state, occurred_at)
      SELECT seq, 'gone', 'dead', occurred_at FROM old`);
    await store.receive(['a', 'b', 'c'].map((id) => incoming(id)));
    for (const lease of await claim(store)) await store.complete(lease);
    await inboxes.query(
      `UPDATE ${schema}.event SET received_at = now() - interval '1 day' WHERE id IN ('a', 'b', 'c')`,
    );
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
  }, 60_000);

  it('releases the held deliveries that no settlement releases, behind 2,000 other keys too', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    // Of each key but the last, one delivery runs. So only the last key is stranded.
    await inboxes.query(`
      INSERT INTO ${schema}.delivery (event, handler, state, worker, occurred_at, ordering)
      SELECT n, 'book', 'running', gen_random_uuid(), now(), lpad(to_hex(n), 32, '0')::uuid
        FROM generate_series(1, 2000) n;
      INSERT INTO ${schema}.delivery (event, handler, state, held, due_at, occurred_at, ordering)
      SELECT 10000 + n, 'book', 'pending', true, now(), now(), lpad(to_hex(n), 32, '0')::uuid
        FROM generate_series(1, 2001) n`);
    const held = async (): Promise<number> => {
      const rows = await inboxes.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM ${schema}.delivery WHERE held`,
      );
      return rows[0]!.count;
    };
    const prune = () => store.prune({ bodiesMs: 1e9, tombstonesMs: 1e9, limit: 1 });
    await prune();
    await prune();
    expect(await held()).toBe(2001);
    await prune();
    expect(await held()).toBe(2000);
    // It begins again with the first key.
    await inboxes.query(
      `UPDATE ${schema}.delivery SET state = 'done', worker = NULL WHERE event = 1`,
    );
    await prune();
    expect(await held()).toBe(1999);
  });
});
