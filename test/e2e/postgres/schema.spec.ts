import { beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { ConnectionSource } from '../../../libs/payments/src/stores/postgres/connection/connection-source.js';
import { migrate, MIGRATIONS } from '../../../libs/payments/src/stores/postgres/migrate.js';

import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import {
  claim,
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

describe('the schema in PostgreSQL', () => {
  const inboxes = usePostgresInboxes({
    tearDown: (started) => started.query('DROP OWNED BY clerk CASCADE; DROP ROLE clerk'),
  });
  let asClerk: string;
  beforeAll(async () => {
    await inboxes.query(`CREATE ROLE clerk LOGIN PASSWORD 'clerk'`);
    const url = new URL(inboxes.connectionString);
    url.username = 'clerk';
    url.password = 'clerk';
    asClerk = url.href;
  });

  it('processes that start at the same time set up the schema once', async () => {
    const schema = freshSchema();
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => inboxes.open({ schema, poolSize: 3 })),
    );
    await Promise.all(stores.map((store, n) => store.receive([incoming(`e${n}`)])));
    expect(await claim(stores[0]!)).toHaveLength(8);
    const meta = await inboxes.query(`SELECT schema_version AS version FROM ${schema}.meta`);
    expect(meta).toEqual([{ version: 1 }]);
  });

  it('open() rejects a schema of a newer version', async () => {
    const schema = freshSchema();
    await inboxes.open({ schema });
    await inboxes.query(`UPDATE ${schema}.meta SET schema_version = 99`);
    const opening = inboxes.open({ schema });
    await expect(opening).rejects.toMatchObject({ code: 'options_invalid' });
    await expect(opening).rejects.toThrow(/has version 99, made by a newer nestjs-payments/);
  });

  it('open() sets up the inbox in a schema that has tables of the application', async () => {
    const schema = freshSchema();
    await inboxes.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.events (id text)`);
    expect(await (await inboxes.open({ schema })).receive([incoming('a')])).toMatchObject([
      { outcome: 'stored' },
    ]);
  });

  it('IN-34 a migration that waits for an open commit does not block receives', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('a')]);
    const [lease] = await claim(store);
    const pool = new Pool({ connectionString: inboxes.connectionString });
    const limits = { connectTimeoutMs: 5000, statementTimeoutMs: 5000 };
    const settings = { ...limits, preparedStatements: true, pool: undefined };
    const source = new ConnectionSource(settings, systemRuntime);
    source.open(pool);
    const addColumn = (name: string): string => `ALTER TABLE ${name}.delivery ADD COLUMN note text`;
    let migrated = false;
    const times: number[] = [];
    let migrating: Promise<void> | undefined;
    await store.commit(lease!, async (tx) => {
      await tx.query(`SELECT FROM ${schema}.delivery`);
      migrating = migrate(source, schema, systemRuntime, [...MIGRATIONS, addColumn]).then(() => {
        migrated = true;
      });
      const waiting = `SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'`;
      while ((await inboxes.query(waiting)).length === 0);
      for (let n = 0; n < 20; n += 1) {
        const begun = performance.now();
        await store.receive([incoming(`meanwhile ${n}`)]);
        times.push(performance.now() - begun);
      }
      expect(migrated).toBe(false);
    });
    await migrating;
    expect(Math.max(...times)).toBeLessThan(3000);
    expect(await inboxes.query(`SELECT schema_version FROM ${schema}.meta`)).toEqual([
      { schema_version: 2 },
    ]);
    await inboxes.query(`SELECT note FROM ${schema}.delivery`);
    await source.close();
  });

  it('a role without CREATE on the database sets up the inbox in a schema that it owns', async () => {
    const schema = freshSchema();
    await inboxes.query(`CREATE SCHEMA ${schema} AUTHORIZATION clerk`);
    const store = await inboxes.open({ schema, connectionString: asClerk });
    await store.receive([incoming('e1'), incoming('e2', { handlers: [] })]);
    const [lease] = await claim(store);
    await store.commit(lease!, (tx) => tx.query('SELECT 1'));
    expect(await store.stats()).toMatchObject({ deliveries: [], unhandled: { count: 1 } });
    await store.activity(60, 1e9);
    await store.prune({ bodiesMs: 0, tombstonesMs: 0, limit: 10 });
  });

  it('a role with only USAGE and table privileges can use the inbox', async () => {
    const schema = freshSchema();
    await inboxes.open({ schema });
    await inboxes.query(`
      GRANT USAGE ON SCHEMA ${schema} TO clerk;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO clerk;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO clerk`);
    const store = await inboxes.open({ schema, connectionString: asClerk });
    await store.receive([incoming('e1')]);
    expect((await store.complete((await claim(store))[0]!)).settled).toBe(true);
    expect((await store.heartbeat(await startWorker(store))).alive).toBe(true);
    await store.prune({ bodiesMs: 0, tombstonesMs: 0, limit: 10 });
    await store.activity(60, 1e9);
  });

  it('open() rejects with the GRANT statements if the role cannot set up the schema', async () => {
    const schema = freshSchema();
    const opening = inboxes.open({ schema, connectionString: asClerk });
    await expect(opening).rejects.toMatchObject({ code: 'options_invalid' });
    await expect(opening).rejects.toThrow(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
    await inboxes.open({ schema });
    await expect(inboxes.open({ schema, connectionString: asClerk })).rejects.toThrow(
      /GRANT USAGE/,
    );
  });

  it('open() rejects a database whose encoding is not UTF8', async () => {
    await inboxes.query(
      `CREATE DATABASE payments_latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`,
    );
    const url = new URL(inboxes.connectionString);
    url.pathname = '/payments_latin';
    try {
      await expect(inboxes.open({ connectionString: url.href })).rejects.toThrow(
        /encoding is UTF8/,
      );
    } finally {
      await inboxes.query('DROP DATABASE payments_latin');
    }
  });
});
