import { optionsInvalid } from '../../errors/option-checks.js';
import { describeError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { Connection, ConnectionSource } from './connection/connection-source.js';
import { sqlStateOf, toInboxError } from './connection/connection-source.js';
import { version1 } from './migrations/0001.js';
import { claimFunctions } from './sql/claim.js';
import { expectationFunctions } from './sql/expectations.js';
import { orderingFunctions } from './sql/ordering.js';
import { receiveFunction } from './sql/receive.js';
import { redriveFunctions } from './sql/redrive.js';
import { lockNumber, quoted } from './sql/postgres-sql.js';
import { settleFunctions } from './sql/settle.js';
import { workerFunctions } from './sql/workers.js';

/** Each step changes the tables from one version to the next. Released steps never change. */
export const MIGRATIONS: readonly ((schema: string) => string)[] = [version1];

/**
 * Returns the SQL that creates the functions. A migration runs its steps and then creates all functions again.
 * Therefore, a change of a function needs a new version of the schema, but the step to this version may be empty.
 * Processes of the previous version call the same functions until they exit, so a function must keep its parameters and
 * results. A new function with other parameters may have the same name, because PostgreSQL then keeps both functions. A
 * new function with other results needs another name.
 */
export function functions(name: string): string {
  const schema = quoted(name);
  const catalogLock = lockNumber(name, 'catalog');
  return [
    orderingFunctions(schema),
    receiveFunction(schema, catalogLock),
    claimFunctions(schema),
    settleFunctions(schema),
    workerFunctions(schema, catalogLock),
    redriveFunctions(schema),
    expectationFunctions(schema),
  ].join('\n');
}

/** The timeout of a statement of the migration, in milliseconds. Waits for locks have a shorter timeout. */
const MIGRATION_MS = 300_000;
/**
 * The time for which one attempt to migrate waits for a lock, in milliseconds. Receives may have to wait during this
 * time.
 */
const LOCK_MS = 1000;
/** The pause between two attempts to migrate, in milliseconds. Receives run during the pause. */
const PAUSE_MS = 1000;
const MAX_TRIES = 120;

/** SQL states of PostgreSQL. */
const PERMISSION_DENIED = '42501';
const LOCK_TIMEOUT = '55P03';

/**
 * Migrates the schema to the newest version that this code supports. Any number of processes may migrate at the same
 * time.
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
      // Most starts find the schema complete. The check of the version needs no permission to create anything.
      if ((await versionOf(source, schema, migrations.length)) === migrations.length) return;
      await source.transaction((connection) => runMigrations(connection, schema, migrations));
      return;
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === PERMISSION_DENIED) throw permissionDenied(error, schema);
      // Another transaction holds a lock. If the migration waited longer for the lock, all receives would wait too.
      if (state !== LOCK_TIMEOUT || tries === MAX_TRIES) throw toInboxError(error);
    }
    await new Promise<void>((resolve) => runtime.schedule(PAUSE_MS, resolve));
  }
}

/** Returns 0 if the schema has no tables of the inbox. `known` is the newest version that this code supports. */
async function versionOf(
  connection: Pick<Connection, 'run'>,
  schema: string,
  known: number,
): Promise<number> {
  const found = 'SELECT to_regclass($1) IS NOT NULL AS found';
  const table = await connection.run(found, [`${schema}.meta`]);
  if (table.rows[0]!['found'] !== 't') return 0;
  const meta = await connection.run(`SELECT schema_version AS version FROM ${quoted(schema)}.meta`);
  const version = Number(meta.rows[0]?.['version'] ?? 0);
  if (version <= known) return version;
  throw optionsInvalid(
    `The schema "${schema}" has version ${version}, made by a newer nestjs-payments; the installed package supports ` +
      `versions up to ${known}. Install the newer nestjs-payments again, or set another "schema" of postgresInbox.`,
  );
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
  // One process migrates at a time. A lock that ends with the transaction works behind a connection pooler too.
  await run(`SELECT pg_advisory_xact_lock(${lockNumber(name, 'migration')})`);
  const { rows } = await run('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [name]);
  // The statement has no IF NOT EXISTS, because this needs the permission to create a schema even if the schema exists.
  if (rows.length === 0) await run(`CREATE SCHEMA ${schema}`);
  const version = await versionOf({ run }, name, migrations.length);
  if (version === migrations.length) return;
  for (const step of migrations.slice(version)) await run(step(schema));
  await run(functions(name));
  await run(
    `INSERT INTO ${schema}.meta (schema_version) VALUES ($1::integer)
     ON CONFLICT (single) DO UPDATE SET schema_version = excluded.schema_version`,
    [migrations.length],
  );
}

function permissionDenied(error: unknown, schema: string): Error {
  return optionsInvalid(
    `The database role has no permission to set up the schema "${schema}" (${describeError(error)}). Ask an ` +
      `administrator to run: CREATE SCHEMA IF NOT EXISTS "${schema}"; GRANT USAGE, CREATE ON SCHEMA "${schema}" ` +
      'TO the role that postgresInbox connects as.',
  );
}
