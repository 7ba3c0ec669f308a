import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresServer } from 'test-postgres';
import { copy } from '../growth-postgres.ts';
import { copyRows, openSqlite } from '../growth-sqlite.ts';
import { concurrently, systemRuntime } from './run-store-operations.ts';

const DAY_MS = 86_400_000;

/** Stores `count` expectations. The first poll of each expectation is due after `firstPollInMs`. */
export async function expectMany(
  store: InboxStore,
  name: string,
  count: number,
  firstPollInMs: number,
): Promise<{ company: string; reference: string }[]> {
  const all = Array.from({ length: count }, (_, n) => ({
    company: 'default',
    reference: `${name}-${n}`,
  }));
  await concurrently(all, 32, (selection) =>
    store.expectations.expect({
      ...selection,
      transactionId: `${selection.reference}-tx`,
      dueInMs: null,
      schedule: [DAY_MS],
      firstPollInMs,
    }),
  );
  return all;
}

/** Returns SQL for the changed columns of a copy of the row `t`. `n` is the SQL for the number of the copy. */
const copied = (n: string): Record<string, string> => ({
  reference: `'copy-' || ${n}`,
  transaction_id: `'tx-copy-' || ${n}`,
  next_poll_at: `t.next_poll_at + ${n}`,
});

/** Creates a PostgreSQL inbox with `count` open expectations that are not due. */
export async function grownPostgres(server: PostgresServer, count: number): Promise<InboxStore> {
  const url = await server.createDatabase();
  const options = { connectionString: url, statementTimeoutMs: 60_000 };
  const store = postgresInbox(options).create(systemRuntime);
  await store.open();
  await expectMany(store, 'first', 1, DAY_MS);
  await copy(server, url, count - 1, copied('n'), ['expectation']);
  return store;
}

/** Creates a SQLite inbox with `count` open expectations that are not due. */
export async function grownSqlite(file: string, count: number): Promise<InboxStore> {
  const first = openSqlite(file);
  await first.open();
  await expectMany(first, 'first', 1, DAY_MS);
  await first.close();
  copyRows(file, count, ['expectation'], copied('i'));
  const store = openSqlite(file);
  await store.open();
  return store;
}
