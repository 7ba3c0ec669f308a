import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { inboxContract } from 'nestjs-payments/testing';
import { postgresInbox } from '../../libs/payments/src/inbox/postgres/index.js';
import type { PostgresTransaction } from '../../libs/payments/src/inbox/postgres/index.js';
import type { InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { systemRuntime } from '../../libs/payments/src/payments.runtime.js';
import { CutProxy } from '../support/cut.proxy.js';
import { freshSchema, PostgresInboxes } from '../support/postgres.inboxes.js';

describe('the contract, on PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterAll(() => inboxes.server.end(), 30_000);

  const cases = inboxContract({
    capabilities: { durable: true, shared: true, transactional: true, ownClock: true },
    breakable: true,
    start: async () => {
      const schema = freshSchema();
      const [proxy, connectionString] = await CutProxy.before(inboxes.connectionString);
      const open = async (clockOffsetMs = 0): Promise<InboxStore> => {
        const runtime = { ...systemRuntime, now: () => Date.now() + clockOffsetMs };
        const options = { connectionString, schema, poolSize: 4, connectTimeoutMs: 1000 };
        const store = postgresInbox(options).create(runtime);
        await store.open();
        stores.push(store);
        return store;
      };
      const stores: InboxStore[] = [];
      const store = await open();
      await inboxes.query(`CREATE TABLE ${schema}.effect (name text NOT NULL)`);
      return {
        store,
        another: async (options) => open(options?.clockOffsetMs),
        // The clock is the server's: instead of waiting for it, all that has happened happened earlier.
        advance: async (ms) => {
          const earlier = (column: string): string =>
            `${column} = ${column} - ${ms} * interval '1 millisecond'`;
          await inboxes.query(`
            UPDATE ${schema}.events SET ${earlier('received_at')}, ${earlier('occurred_at')};
            UPDATE ${schema}.deliveries
               SET ${earlier('due_at')}, ${earlier('started_at')}, ${earlier('finished_at')};
            -- Out of the way first: no minute may come to be where another still is.
            UPDATE ${schema}.activity SET minute = minute - interval '1000 days';
            UPDATE ${schema}.activity SET minute =
              date_trunc('minute', minute + interval '1000 days' - ${ms} * interval '1 millisecond', 'UTC')`);
        },
        effects: {
          write: async (tx, effect) => {
            const insert = `INSERT INTO ${schema}.effect VALUES ($1)`;
            await (tx as PostgresTransaction).query(insert, [effect]);
          },
          read: async () => {
            const rows = await inboxes.query<{ name: string }>(`SELECT name FROM ${schema}.effect`);
            return rows.map(({ name }) => name);
          },
        },
        breakDown: () => proxy.end(),
        dispose: async () => {
          await Promise.all(stores.map((opened) => opened.close()));
          await proxy.end();
        },
      };
    },
  });
  for (const { title, skipped, run } of cases)
    (skipped === null ? it : it.skip)(title, run, 30_000);
});
