import { ModuleLogger } from '../../errors/module-logger.js';
import { describeError, optionsInvalid } from '../../errors/payments-error.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import { abortableDelay, withTimeLimit } from '../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { Semaphore } from '../../runtime/semaphore.js';
import { clientOf, ConnectionSource, openPool } from './connection/connection-source.js';
import { PostgresInboxError, sqlStateOf, toInboxError } from './connection/database-connection.js';
import type { Connection } from './connection/database-connection.js';
import { WakeListener, WakeNotifier } from './connection/wake-notifications.js';
import { ReceiveQueue, SettleQueue } from './group-commit.js';
import type { ResolvedPostgresOptions } from './postgres-options.js';
import { catalogFunctions } from './sql/catalog.js';
import { claimFunctions } from './sql/claim-functions.js';
import { ClaimCursors, ClaimStatements } from './sql/claim.js';
import { CommitTransaction } from './sql/commit.js';
import { expectationFunctions } from './sql/expectations.js';
import { orderingFunctions, WaitingDeliveries } from './sql/ordering.js';
import { Pruning } from './sql/prune.js';
import { receiveFunction, ReceiveStatement } from './sql/receive.js';
import { redriveFunctions } from './sql/redrive.js';
import { SqlEvents } from '../sql/events.js';
import { PostgresSql } from './connection/postgres-sql.js';
import { lockNumber, quoted } from './sql/schema.js';
import { settleFunctions, SettleStatement } from './sql/settle.js';
import { eventLayout, tables } from './sql/tables.js';
import { workerFunctions } from './sql/workers.js';

/** The parts of an open store. */
export interface OpenStore {
  readonly source: ConnectionSource;
  readonly receives: ReceiveQueue;
  readonly claims: ClaimStatements;
  readonly outcomes: SettleQueue;
  readonly events: SqlEvents;
  readonly commits: CommitTransaction;
  readonly pruning: Pruning;
  readonly waiting: WaitingDeliveries;
  readonly notifier: WakeNotifier;
  readonly listener: WakeListener;
  close(): Promise<void>;
}

/** Connects, checks the server, sets up the schema and creates the parts of the store. */
export async function openStore(
  options: ResolvedPostgresOptions,
  schema: string,
  runtime: PaymentsRuntime,
): Promise<OpenStore> {
  const { connectTimeoutMs, statementTimeoutMs, pollMs } = options;
  const { pool, size } = await openPool(options);
  const source = new ConnectionSource(pool, options, runtime);
  const end = async (): Promise<void> => {
    source.close();
    if (options.pool === undefined) await endWithin(connectTimeoutMs, runtime, pool.end());
  };
  try {
    await reachServer(source, options, runtime);
    await migrate(source, options.schema, runtime);
  } catch (error) {
    await end();
    throw error;
  }
  const receive = new ReceiveStatement(source, schema);
  const receives = new ReceiveQueue((events) => receive.receive(events));
  const settle = new SettleStatement(source, schema);
  const notifier = new WakeNotifier(source, options.schema, runtime);
  const listener = new WakeListener(() => clientOf(pool), options.schema, pollMs, runtime);
  const cursors = new ClaimCursors(source, schema, runtime, () => listener.wake());
  return {
    source,
    receives,
    notifier,
    listener,
    claims: new ClaimStatements(source, schema, cursors),
    outcomes: new SettleQueue((all) => settle.settle(all), statementTimeoutMs, runtime),
    events: new SqlEvents(new PostgresSql(source, schema), eventLayout(schema)),
    commits: new CommitTransaction(
      source,
      schema,
      commitSemaphore(size, connectTimeoutMs, runtime),
      runtime,
    ),
    pruning: new Pruning(source, schema),
    waiting: new WaitingDeliveries(source, schema),
    async close() {
      await endWithin(connectTimeoutMs, runtime, listener.close());
      await receives.drained();
      await notifier.flush();
      await end();
    },
  };
}

/** SQL states of a server that starts (57P03) or has no free connection (53300). */
const NOT_READY = /^(57P03|53300)$/;

/**
 * Checks the server. If it cannot be reached, tries again for `startTimeoutMs`: a deployment may start the database and
 * the application at the same time.
 *
 * @throws PaymentsError `inbox_unavailable`, with the cause and the options that may be wrong; `options_invalid`
 */
async function reachServer(
  source: ConnectionSource,
  { startTimeoutMs }: ResolvedPostgresOptions,
  runtime: PaymentsRuntime,
): Promise<void> {
  const end = runtime.monotonic() + startTimeoutMs;
  const backoff = new Backoff(runtime, STORE_BACKOFF);
  for (let tries = 1; ; tries += 1) {
    try {
      return await source.checkServer();
    } catch (error) {
      if (!(error instanceof PostgresInboxError)) throw error;
      const waitMs = backoff.nextMs();
      const mayRecover = error.sqlState === null || NOT_READY.test(error.sqlState);
      if (!mayRecover || runtime.monotonic() + waitMs > end) throw notReached(error, tries);
      if (tries === 1) {
        new ModuleLogger('PostgresInbox').warn(
          `The application waits up to ${startTimeoutMs} ms for the database of the inbox ("startTimeoutMs").`,
        );
      }
      await abortableDelay(waitMs, runtime, new AbortController().signal);
    }
  }
}

function notReached({ message, sqlState }: PostgresInboxError, tries: number): PostgresInboxError {
  const times = tries === 1 ? '1 try' : `${tries} tries`;
  return new PostgresInboxError(
    `${message}. The application does not start, after ${times}. Check that the database runs, and the ` +
      '"connectionString" or "pool" of postgresInbox (without either, PGHOST and the other variables of PostgreSQL). ' +
      'To wait longer for a database that starts later, raise "startTimeoutMs".',
    sqlState,
  );
}

/**
 * Limits the connections that `context.commit` uses. Without the limit, handlers that commit could use every connection of
 * the pool, and receives, claims and outcomes would find none.
 */
function commitSemaphore(
  poolSize: number,
  connectTimeoutMs: number,
  runtime: PaymentsRuntime,
): Semaphore {
  const permits = Math.max(1, poolSize - (poolSize >= 12 ? 4 : 2));
  const timeoutError = (): PostgresInboxError =>
    new PostgresInboxError(
      `No connection was free for context.commit within ${connectTimeoutMs} ms: ${permits} other commits use them. ` +
        'Keep their work short, or raise "poolSize".',
      null,
    );
  return new Semaphore(permits, connectTimeoutMs, timeoutError, runtime);
}

/** Waits until connections have ended, for a bounded time: a handler may keep one, or the network may be silent. */
async function endWithin(
  ms: number,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  ended: Promise<void>,
): Promise<void> {
  const late = (): Error => new Error(`The connections did not end within ${ms} ms.`);
  await withTimeLimit(ended, ms, runtime, late).catch(() => {});
}

/** Version 1 of the schema: all tables and functions. */
export function versionOne(name: string): string {
  const schema = quoted(name);
  const catalogLock = lockNumber(name, 'catalog');
  return [
    tables(schema),
    orderingFunctions(schema),
    catalogFunctions(schema, catalogLock),
    receiveFunction(schema, catalogLock),
    claimFunctions(schema),
    settleFunctions(schema),
    workerFunctions(schema, catalogLock),
    redriveFunctions(schema),
    expectationFunctions(schema),
  ].join('\n');
}

/** Each step changes the schema from one version to the next. Released steps never change. */
const MIGRATIONS: readonly ((schema: string) => string)[] = [versionOne];

/** How long a statement of the migration may take, in milliseconds, without its waits for locks. */
const MIGRATION_MS = 300_000;
/** How long one try waits for a lock, in milliseconds. Receives of that time wait behind it. */
const LOCK_MS = 1000;
/** The pause between two tries, in milliseconds. Receives run in it. */
const PAUSE_MS = 1000;
const MAX_TRIES = 120;

/** SQL states of PostgreSQL. */
const PERMISSION_DENIED = '42501';
const LOCK_TIMEOUT = '55P03';

/**
 * Migrates the schema to the version that this code knows. Any number of processes may migrate at the same time.
 *
 * @throws PaymentsError `options_invalid` if the role has no permission, or if another version of nestjs-payments created
 *   the schema
 */
export async function migrate(
  source: ConnectionSource,
  schema: string,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  migrations = MIGRATIONS,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      // Most starts find the schema complete. This check needs no permission to create anything.
      if ((await versionOf(source, schema, migrations.length)) === migrations.length) return;
      await source.transaction((connection) => runMigrations(connection, schema, migrations));
      return;
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === PERMISSION_DENIED) throw permissionDenied(error, schema);
      // Another transaction has a lock. If this one waited longer for it, all receives would wait too.
      if (state !== LOCK_TIMEOUT || tries === MAX_TRIES) throw toInboxError(error);
    }
    await new Promise<void>((resolve) => runtime.schedule(PAUSE_MS, resolve));
  }
}

/** The version of the schema; 0 if it has no tables of the inbox. */
async function versionOf(source: ConnectionSource, schema: string, known: number): Promise<number> {
  const found = 'SELECT to_regclass($1) IS NOT NULL AS found';
  const [table] = await source.query(found, [`${schema}.meta`]);
  if (table!['found'] !== 't') return 0;
  const [meta] = await source.query(`SELECT schema_version AS version FROM ${quoted(schema)}.meta`);
  return checkedVersion(Number(meta?.['version'] ?? 0), schema, known);
}

async function runMigrations(
  connection: Connection,
  name: string,
  migrations: typeof MIGRATIONS,
): Promise<void> {
  const schema = quoted(name);
  const run = async (text: string, values: readonly (string | number)[] = []) =>
    connection.run(text, values, MIGRATION_MS);
  await run(`SET LOCAL statement_timeout = ${MIGRATION_MS}`);
  await run(`SET LOCAL lock_timeout = ${LOCK_MS}`);
  // One process migrates at a time. A lock of the transaction works behind a connection pooler too.
  await run(`SELECT pg_advisory_xact_lock(${lockNumber(name, 'migration')})`);
  const { rows } = await run('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [name]);
  // Not IF NOT EXISTS, which needs the permission to create a schema even if the schema exists.
  if (rows.length === 0) await run(`CREATE SCHEMA ${schema}`);
  const meta = await run('SELECT to_regclass($1) IS NOT NULL AS found', [`${name}.meta`]);
  let version = 0;
  if (meta.rows[0]!['found'] === 't') {
    const current = await run(`SELECT schema_version AS version FROM ${schema}.meta`);
    version = checkedVersion(Number(current.rows[0]!['version']), name, migrations.length);
  }
  if (version === migrations.length) return;
  for (const step of migrations.slice(version)) await run(step(name));
  await run(
    `INSERT INTO ${schema}.meta (schema_version) VALUES ($1::integer)
     ON CONFLICT (single) DO UPDATE SET schema_version = excluded.schema_version`,
    [migrations.length],
  );
}

function checkedVersion(version: number, schema: string, known: number): number {
  if (version <= known) return version;
  throw optionsInvalid(
    `The schema "${schema}" has version ${version}, made by a newer nestjs-payments; the installed one knows versions up ` +
      `to ${known}. Install the newer nestjs-payments again, or set another "schema" of postgresInbox.`,
  );
}

function permissionDenied(error: unknown, schema: string): Error {
  return optionsInvalid(
    `The database role has no permission to set up the schema "${schema}" (${describeError(error)}). Ask an ` +
      `administrator to run: CREATE SCHEMA IF NOT EXISTS "${schema}"; GRANT USAGE, CREATE ON SCHEMA "${schema}" ` +
      'TO the role that postgresInbox connects as.',
  );
}
