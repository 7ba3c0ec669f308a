import { beforeAll, describe, it } from '@jest/globals';
import type { Client } from 'pg';
import { inboxContract } from './inbox-contract.ts';
import type { InboxStore } from '../../libs/payments/src/inbox/store/inbox-store.js';
import { postgresInbox } from '../../libs/payments/src/stores/postgres/index.js';
import type { PostgresTransaction } from '../../libs/payments/src/stores/postgres/index.js';
import { systemRuntime } from '../../libs/payments/src/runtime/payments-runtime.js';
import { TcpProxy } from '../chaos/tcp-proxy.ts';
import { freshSchema, usePostgresInboxes } from '../support/postgres/postgres-inboxes.js';

describe('the contract, on PostgreSQL', () => {
  const inboxes = usePostgresInboxes({ keepOpen: true });
  const schema = freshSchema();
  const clock = `${schema}_clock`;
  /** Empties all tables. This takes a tenth of the time that a new schema for each case would take. */
  const reset = `
    DO $$
    DECLARE name text;
    BEGIN
      FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' AND tablename <> 'meta' LOOP
        EXECUTE format('DELETE FROM ${schema}.%I', name);
      END LOOP;
    END $$;
    UPDATE ${schema}.meta SET catalog_version = 0, pruned_to = 0;
    UPDATE ${clock}.ahead SET ms = 0`;
  let client: Client;

  // The search path of the inbox's connections and functions begins with the schema `clock`. Therefore the inbox calls
  // the functions in this schema, which return PostgreSQL's time plus an offset from a table.
  beforeAll(async () => {
    client = await inboxes.openClient();
    await client.query(`
      CREATE SCHEMA ${clock};
      CREATE TABLE ${clock}.ahead (ms double precision NOT NULL);
      INSERT INTO ${clock}.ahead VALUES (0);
      CREATE FUNCTION ${clock}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        'SELECT pg_catalog.clock_timestamp() + ms * interval ''1 ms'' FROM ${clock}.ahead';
      CREATE FUNCTION ${clock}.now() RETURNS timestamptz LANGUAGE sql STABLE AS
        'SELECT pg_catalog.now() + ms * interval ''1 ms'' FROM ${clock}.ahead'`);
    await inboxes.open({ schema });
    await client.query(`
      CREATE TABLE ${schema}.effect (name text NOT NULL);
      DO $$
      DECLARE func regprocedure;
      BEGIN
        FOR func IN SELECT oid FROM pg_proc WHERE pronamespace = '${schema}'::regnamespace LOOP
          EXECUTE format('ALTER FUNCTION %s SET search_path = ${clock}, pg_catalog, pg_temp', func);
        END LOOP;
      END $$`);
  });

  const cases = inboxContract({
    capabilities: { durable: true, shared: true, transactional: true, ownClock: true },
    breakable: true,
    start: async () => {
      await client.query(reset);
      const [proxy, href] = await TcpProxy.before(inboxes.connectionString);
      const url = new URL(href);
      url.searchParams.set('options', `-c search_path=${clock},pg_catalog`);
      const stores: InboxStore[] = [];
      const open = async (clockOffsetMs = 0): Promise<InboxStore> => {
        const runtime = { ...systemRuntime, now: () => Date.now() + clockOffsetMs };
        const connectionString = url.href;
        const options = { connectionString, schema, poolSize: 4 };
        const store = postgresInbox(options).create(runtime);
        await store.open();
        stores.push(store);
        return store;
      };
      const store = await open();
      return {
        store,
        another: async (options) => open(options?.clockOffsetMs),
        advance: async (ms) => {
          await client.query(`UPDATE ${clock}.ahead SET ms = ms + ${ms}`);
        },
        effects: {
          write: async (tx, effect) => {
            const insert = `INSERT INTO ${schema}.effect VALUES ($1)`;
            await (tx as PostgresTransaction).query(insert, [effect]);
          },
          read: async () => {
            const { rows } = await client.query<{ name: string }>(
              `SELECT name FROM ${schema}.effect`,
            );
            return rows.map(({ name }) => name);
          },
        },
        breakDown: () => proxy.close(),
        dispose: async () => {
          await Promise.all(stores.map((opened) => opened.close()));
          await proxy.close();
        },
      };
    },
  });
  for (const { title, skipped, run } of cases) (skipped === null ? it : it.skip)(title, run);
});
