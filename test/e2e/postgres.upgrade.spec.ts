import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { eventually } from '../support/eventually.js';
import { expectToGoOn, outcomes } from '../support/inbox.upgrade.js';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

const VERSION_1 = readFileSync(join(import.meta.dirname, 'postgres.version-1.sql'), 'utf8');

/** What an instance of version 1 does, in its own statements. */
const AS_VERSION_1 = {
  receive: (schema: string, id: string) => `
    WITH stored AS (
      INSERT INTO ${schema}.events (company, id, event_type, occurred_at, digest, raw, unhandled)
      VALUES ('default', '${id}', 'transaction.completed', now(), '\\x00', '{}', false)
      RETURNING seq, ordering, received_at
    )
    INSERT INTO ${schema}.deliveries (event, handler, state, due_at, ordering)
    SELECT seq, 'book', 'pending', received_at, ordering FROM stored`,
  claim: (schema: string) =>
    `SELECT o_company, o_id, o_handler, o_token, o_attempt, o_newer, o_taken_over, o_received_at,
            encode(o_raw, 'base64') AS raw
       FROM ${schema}.claim(ARRAY['book'], 10, 30000)`,
  settle: (schema: string, id: string, change: string) => `
    UPDATE ${schema}.deliveries d SET ${change}
     WHERE d.event = (SELECT e.seq FROM ${schema}.events e WHERE e.id = '${id}')
       AND d.state = 'running' AND d.due_at > clock_timestamp()`,
  done: `state = 'done', finished_at = clock_timestamp(), due_at = NULL`,
  failed: `last_error = 'no', state = 'pending', due_at = clock_timestamp(), finished_at = NULL`,
  dead: `last_error = 'no', state = 'dead', due_at = NULL, finished_at = clock_timestamp()`,
  prune: (schema: string, id: string) => `
    WITH gone AS (DELETE FROM ${schema}.deliveries d
      WHERE d.event = (SELECT seq FROM ${schema}.events WHERE id = '${id}'))
    UPDATE ${schema}.events SET raw = NULL, unhandled = false, done_by = ARRAY['book'] WHERE id = '${id}'`,
};

describe('the upgrade of a PostgreSQL inbox of version 1', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  async function versionOne(): Promise<string> {
    const schema = freshSchema();
    await inboxes.query(VERSION_1.replaceAll('payments_inbox_1', schema));
    return schema;
  }

  it('has everything that was stored go on, with no headers and no history of before', async () => {
    const schema = await versionOne();
    for (const id of ['done', 'failed', 'dead', 'lost']) {
      await inboxes.query(AS_VERSION_1.receive(schema, id));
      await inboxes.query(AS_VERSION_1.claim(schema));
      if (id !== 'lost') {
        await inboxes.query(AS_VERSION_1.settle(schema, id, AS_VERSION_1[id as 'done']));
      }
      if (id === 'failed') {
        await inboxes.query(
          `UPDATE ${schema}.deliveries SET due_at = now() + interval '1 hour' WHERE last_error = 'no'`,
        );
      }
    }
    await inboxes.query(
      `UPDATE ${schema}.deliveries SET due_at = now() WHERE state IN ('pending', 'running')`,
    );
    await inboxes.query(AS_VERSION_1.receive(schema, 'new'));
    const store = await inboxes.open({ schema });
    await expectToGoOn(store, 'default');
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 })).toBe(5);
    expect(await store.receive([incoming('done')])).toMatchObject([{ outcome: 'conflict' }]);
  });

  it('leaves an instance of version 1 that runs on able to receive, claim, settle and prune', async () => {
    const schema = await versionOne();
    const store = await inboxes.open({ schema });
    await inboxes.query(AS_VERSION_1.receive(schema, 'a'));
    await store.receive([incoming('b', { headers: { 'user-agent': 'x' } })]);
    expect(await inboxes.query(AS_VERSION_1.claim(schema))).toHaveLength(2);
    await inboxes.query(AS_VERSION_1.settle(schema, 'a', AS_VERSION_1.failed));
    await inboxes.query(AS_VERSION_1.settle(schema, 'b', AS_VERSION_1.done));
    const [again] = await claim(store);
    expect(again).toMatchObject({ id: 'a', attempt: 2 });
    expect(await store.complete(again!)).toBe(true);
    expect(await outcomes(store, 'default', 'a')).toEqual([[2, 'done']]);
    expect(await store.find('default', 'b')).toMatchObject({
      headers: { 'user-agent': 'x' },
      deliveries: [{ state: 'done', history: [] }],
    });
    // Each is counted once: the one by the old instance's statement, the other by the group it was settled in.
    expect((await store.stats()).deliveries).toEqual([
      { handler: 'book', state: 'done', count: 2 },
    ]);
    await inboxes.query(AS_VERSION_1.prune(schema, 'b'));
    const tombstone = (await store.find('default', 'b'))!;
    expect([tombstone.raw, tombstone.headers]).toEqual([null, {}]);
  });

  it('lets whoever may use the old tables use the new one', async () => {
    const schema = await versionOne();
    await inboxes.query(`
      CREATE ROLE "odd Clerk" LOGIN PASSWORD 'clerk';
      GRANT USAGE ON SCHEMA ${schema} TO "odd Clerk";
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO "odd Clerk"`);
    try {
      await inboxes.open({ schema });
      const url = new URL(inboxes.connectionString);
      url.username = 'odd%20Clerk';
      url.password = 'clerk';
      const clerk = await inboxes.open({ schema, connectionString: url.href });
      const counts = { received: 1, handled: 0, failed: 0, dead: 0, handledWithin: [] };
      await clerk.record(counts);
      expect(await clerk.activity(2)).toContainEqual(expect.objectContaining({ received: 1 }));
      expect(await clerk.prune({ bodiesMs: 0, tombstonesMs: 0, limit: 1 })).toBe(0);
    } finally {
      await inboxes.close();
      await inboxes.query('DROP OWNED BY "odd Clerk" CASCADE; DROP ROLE "odd Clerk"');
    }
  });

  it('empties the headers of what is pruned, in the database', async () => {
    const schema = await versionOne();
    const store = await inboxes.open({ schema });
    const headers = () => inboxes.query(`SELECT headers FROM ${schema}.events`);
    await store.receive([incoming('a', { headers: { 'user-agent': 'x' } })]);
    expect(await headers()).toEqual([{ headers: '{"user-agent":"x"}' }]);
    await store.complete((await claim(store))[0]!);
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 1 })).toBe(1);
    expect(await headers()).toEqual([{ headers: null }]);
  });

  it('forgets recorded minutes after a day', async () => {
    const schema = await versionOne();
    const store = await inboxes.open({ schema });
    const minutesLeft = async (agoMinutes: number): Promise<number> => {
      await inboxes.query(`
        INSERT INTO ${schema}.activity
        VALUES (date_trunc('minute', now()) - ${agoMinutes} * interval '1 minute', 1, 0, 0, 0, '{}')`);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 1 });
      return (await inboxes.query(`SELECT FROM ${schema}.activity`)).length;
    };
    expect(await minutesLeft(1435)).toBe(1);
    expect(await minutesLeft(1441)).toBe(1);
  });

  it('begins again where it and a working instance waited for each other', async () => {
    const schema = await versionOne();
    const working = new Client({ connectionString: inboxes.connectionString });
    await working.connect();
    try {
      const waiting = `SELECT FROM pg_locks WHERE NOT granted AND relation = '${schema}.events'::regclass`;
      await working.query('BEGIN');
      await working.query(`LOCK TABLE ${schema}.events IN ROW EXCLUSIVE MODE`);
      const opening = inboxes.open({ schema });
      opening.catch(() => {});
      await eventually(async () => expect(await inboxes.query(waiting)).not.toEqual([]));
      // One of the two is told of a deadlock, after a second.
      await working.query(`SELECT count(*) FROM ${schema}.deliveries`).catch(() => {});
      await working.query('ROLLBACK');
      const store = await opening;
      await store.receive([incoming('a')]);
      expect(await claim(store)).toHaveLength(1);
    } finally {
      await working.end();
    }
  }, 30_000);
});
