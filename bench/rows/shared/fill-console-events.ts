import { join } from 'node:path';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresServer } from 'test-postgres';
import { copy } from '../growth-postgres.ts';
import { copyRows, openSqlite } from '../growth-sqlite.ts';
import { completeOne, systemRuntime } from './run-store-operations.ts';

/** One event in 200 has a dead delivery. One event in 2,000 has a delivery that failed and waits for a retry. */
const DEAD = 200;
const RETRYING = 2000;
/**
 * Milliseconds between two events. At this rate, a million events are younger than seven days, so no event is pruned
 * during the measurement.
 */
const APART_MS = 400;
/** Factors that spread consecutive event numbers over all 32-bit numbers. */
const OF_ID = 2_654_435_761;
const OF_TRANSACTION = 2_246_822_519;

/** Returns the reference of event number `n`. */
export const referenceOf = (n: number): string => `ORDER-${n}`;

/** Creates a PostgreSQL database with events of several companies, and returns its URL. The event times increase. */
export async function fillPostgres(server: PostgresServer, count: number): Promise<string> {
  const url = await server.createDatabase();
  const options = { connectionString: url, statementTimeoutMs: 300_000 };
  await completeOne(postgresInbox(options).create(systemRuntime));
  const hexOf = (factor: number): string =>
    `lpad(to_hex(n::bigint * ${factor} % 4294967296), 8, '0')`;
  const receivedAt = `${Date.now()} - (${count} - n)::bigint * ${APART_MS}`;
  await copy(server, url, count - 1, {
    ...columns('n', `(n || '')`, hexOf, receivedAt),
    due_at: `CASE WHEN ${retrying('n')} THEN ${Date.now() + 86_400_000} END`,
  });
  return url;
}

/** Creates a SQLite database with the same events as {@link fillPostgres}, and returns its file. */
export async function fillSqlite(folder: string, count: number): Promise<string> {
  const file = join(folder, 'console.db');
  await completeOne(openSqlite(file));
  const hexOf = (factor: number): string => `printf('%08x', i * ${factor} % 4294967296)`;
  const receivedAt = `${Date.now()} - (${count} - i) * ${APART_MS}`;
  copyRows(file, count, ['event', 'body', 'delivery'], {
    // Without the cast, the number of a copy is a floating-point number, whose text ends in ".0".
    ...columns('i', 'CAST(i AS integer)', hexOf, receivedAt),
    queue: `CASE WHEN ${dead('i')} THEN 'dead' WHEN ${retrying('i')} THEN 'due' END`,
    due_at: `CASE WHEN ${retrying('i')} THEN ${Date.now() + 86_400_000} END`,
  });
  return file;
}

const dead = (n: string): string => `${n} % ${DEAD} = 1`;
const retrying = (n: string): string => `${n} % ${RETRYING} = 3`;

/**
 * Returns SQL for the columns of a copied event that are the same in both databases. `n` is an SQL expression for the
 * number of the copy, and `text` is an SQL expression for this number as text.
 */
function columns(
  n: string,
  text: string,
  hexOf: (factor: number) => string,
  receivedAt: string,
): Record<string, string> {
  return {
    company: `CASE ${n} % 5 WHEN 0 THEN 'north' WHEN 1 THEN 'south' ELSE 'default' END`,
    id: `'evt_' || ${hexOf(OF_ID)}`,
    ordering_key: `'txn_' || ${hexOf(OF_TRANSACTION)}`,
    reference: `'ORDER-' || ${text}`,
    amount: `${text} || '.00'`,
    currency: `'KES'`,
    state: `CASE WHEN ${dead(n)} THEN 'dead' WHEN ${retrying(n)} THEN 'pending' ELSE 'done' END`,
    received_at: receivedAt,
    occurred_at: receivedAt,
    finished_at: `CASE WHEN ${retrying(n)} THEN NULL ELSE ${receivedAt} + 5 + ${n} % 97 END`,
    last_error: `CASE WHEN ${dead(n)} OR ${retrying(n)} THEN CASE ${n} / ${DEAD} % 4
      WHEN 0 THEN 'HTTP 503 from ledger'
      WHEN 1 THEN 'The ledger gave no response within ' || ${text} || ' ms'
      WHEN 2 THEN 'Order ' || ${text} || ' has another amount'
      ELSE 'connect ECONNREFUSED 10.0.0.7:5432' END END`,
  };
}
