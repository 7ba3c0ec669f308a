import { afterAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { InboxStore } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { ConnectionSource } from '../../../libs/payments/src/stores/postgres/connection/connection-source.js';
import {
  migrate as migratePostgres,
  MIGRATIONS as POSTGRES,
} from '../../../libs/payments/src/stores/postgres/migrate.js';
import {
  migrate as migrateSqlite,
  MIGRATIONS as SQLITE,
} from '../../../libs/payments/src/stores/sqlite/migrate.js';
import { SqliteConnection } from '../../../libs/payments/src/stores/sqlite/thread/connection.js';
import { freshSchema, usePostgresInboxes } from '../../support/postgres/postgres-inboxes.js';
import { SqliteHarness } from '../../support/sqlite/sqlite-harness.js';
import { incoming, TestWorker } from '../../store-contract/contract-fixtures.js';

/** The number of events that are received before the migration. At least as many are received after the migration. */
const EVENTS = 200;

/** Stores events whose deliveries are in every state. Returns their ids. */
async function fill(store: InboxStore, worker: TestWorker): Promise<string[]> {
  const ids = ['done', 'dead', 'retried', 'running', 'skipped'];
  const wanted = [{ handler: 'book', limit: 4 }];
  await store.receive(ids.map((id) => incoming({ id, orderingKey: `key of ${id}` })));
  const leases = await store.claim({ workerId: worker.id, wanted });
  const leaseOf = (id: string) => leases.find((lease) => lease.id === id)!;
  await store.complete(leaseOf('done'));
  await store.fail(leaseOf('dead'), { error: 'no', retryInMs: null });
  await store.fail(leaseOf('retried'), { error: 'later', retryInMs: 3_600_000 });
  await store.skip([{ company: 'acme', id: 'skipped', handlers: ['book'] }]);
  await store.receive([
    incoming({ id: 'waiting', orderingKey: 'key of running' }),
    incoming({ id: 'unhandled', handlers: [] }),
    incoming({ id: 'stale', handlers: [], stale: true }),
  ]);
  await store.expectations.expect({
    company: 'acme',
    reference: 'expected',
    transactionId: null,
    dueInMs: null,
    schedule: [3_600_000],
    firstPollInMs: 3_600_000,
  });
  return [...ids, 'waiting', 'unhandled', 'stale'];
}

/**
 * Upgrades the schema while a process of version 1 receives events, and checks that no event is lost or rejected and that the
 * process continues to work.
 */
async function upgradeWhileReceiving(
  store: InboxStore,
  upgrade: () => Promise<void>,
): Promise<void> {
  const worker = await TestWorker.start(store);
  const ids = await fill(store, worker);
  const contentOf = async () => {
    const expected = (await store.expectations.find('acme', 'expected'))!;
    const events = await Promise.all(ids.map((id) => store.find('acme', id)));
    return { events, expected: { ...expected, ageMs: 0 } };
  };
  const before = await contentOf();
  const received: string[] = [];
  const times: number[] = [];
  const receive = async (): Promise<void> => {
    const id = `event ${received.length}`;
    received.push(id);
    const begun = performance.now();
    expect(await store.receive([incoming({ id, handlers: ['mail'] })])).toMatchObject([
      { outcome: 'stored' },
    ]);
    times.push(performance.now() - begun);
  };
  let upgraded = false;
  const receiving = (async () => {
    for (let after = 0; after < EVENTS; after += upgraded ? 1 : 0) await receive();
  })();
  for (let n = 0; n < EVENTS; n += 1) await receive();
  await upgrade();
  upgraded = true;
  await receiving;
  expect(Math.max(...times)).toBeLessThan(3000);
  expect(await contentOf()).toEqual(before);
  const handled = new Set<string>();
  for (;;) {
    const wanted = [{ handler: 'mail', limit: 100 }];
    const leases = await store.claim({ workerId: worker.id, wanted });
    for (const lease of leases) {
      expect((await store.complete(lease)).settled).toBe(true);
      expect(handled.has(lease.id)).toBe(false);
      handled.add(lease.id);
    }
    if (leases.length === 0) break;
  }
  expect([...handled].toSorted()).toEqual(received.toSorted());
  const request = { force: true, dueInMs: [0] };
  const selection = { company: 'acme', id: 'done', handlers: ['book'] };
  expect(await store.redrive([selection], request)).toBe(1);
}

describe('a later version of the schema', () => {
  const inboxes = usePostgresInboxes();
  const sqlite = new SqliteHarness();
  afterAll(() => sqlite.dispose());

  it('IN-43 an upgrade of the schema on PostgreSQL loses and rejects no event that arrives during the upgrade', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const pool = new Pool({ connectionString: inboxes.connectionString });
    const settings = {
      connectTimeoutMs: 5000,
      statementTimeoutMs: 5000,
      preparedStatements: true,
      pool,
    };
    const source = new ConnectionSource(settings, systemRuntime);
    source.open(pool);
    const version2 = (quoted: string): string => `
      ALTER TABLE ${quoted}.event ADD COLUMN note text;
      ALTER TABLE ${quoted}.delivery ADD COLUMN note text NOT NULL DEFAULT '';
      CREATE INDEX delivery_note ON ${quoted}.delivery (note) WHERE note <> ''`;
    await upgradeWhileReceiving(store, () =>
      migratePostgres(source, schema, systemRuntime, [...POSTGRES, version2]),
    );
    expect(await inboxes.query(`SELECT schema_version FROM ${schema}.meta`)).toEqual([
      { schema_version: 2 },
    ]);
    await expect(inboxes.open({ schema })).rejects.toThrow('has version 2, made by a newer');
    await source.close();
    await pool.end();
  });

  it('IN-43 an upgrade of the schema on SQLite loses and rejects no event that arrives during the upgrade', async () => {
    const store = await sqlite.open();
    const version2 = `
      ALTER TABLE payments_inbox_delivery ADD COLUMN note TEXT NOT NULL DEFAULT '';
      ALTER TABLE payments_inbox_event ADD COLUMN note TEXT;
      CREATE INDEX payments_inbox_delivery_note ON payments_inbox_delivery (note) WHERE note <> ''`;
    const connection = new SqliteConnection(sqlite.connect());
    await upgradeWhileReceiving(store, async () =>
      migrateSqlite(connection, 5000, [...SQLITE, version2]),
    );
    expect(connection.get('SELECT version FROM payments_inbox_meta')).toMatchObject({ version: 2 });
    await expect(sqlite.open()).rejects.toThrow('tables of version 2, made by a newer');
  });
});
