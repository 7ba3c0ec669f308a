import { describeError } from '../../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import { optionsInvalid } from '../../../errors/options-invalid.js';
import { FORMER_TABLES, lockNumber, quoted, versionOne } from '../sql/schema.js';
import type { ConnectionSource } from './connection-source.js';
import type { Connection } from './database-connection.js';
import { sqlStateOf, unavailable } from './database-failure.js';

/** Leads from each version of the schema to the next. Only ever added to. */
const MIGRATIONS: readonly ((schema: string) => string)[] = [versionOne];

/** How long the migration may take, without its waits for locks. */
const MIGRATION_MS = 300_000;
/** How long one try waits for a lock. Receives that come meanwhile wait behind it. */
const LOCK_MS = 1000;
/** Between two tries, so that receives get through. */
const PAUSE_MS = 1000;
const MAX_TRIES = 120;

/**
 * Brings the schema to the version that this code knows. Any number of processes may do so at the same time.
 *
 * @throws PaymentsError `options_invalid` if the role may not, or if another version of nestjs-payments made the schema.
 */
export async function migrate(
  source: ConnectionSource,
  schema: string,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  migrations = MIGRATIONS,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      // Most starts find it as it should be. A role that may not create anything is enough for that.
      if ((await versionOf(source, schema, migrations.length)) === migrations.length) return;
      await source.transaction((connection) => migrateHere(connection, schema, migrations));
      return;
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === '42501') throw mayNot(error, schema);
      // Another transaction holds a lock. To wait for it longer would make all receives wait.
      if (state !== '55P03' || tries === MAX_TRIES) throw unavailable(error);
    }
    await new Promise<void>((resolve) => runtime.schedule(PAUSE_MS, resolve));
  }
}

async function versionOf(source: ConnectionSource, schema: string, known: number): Promise<number> {
  const tables = ['meta', ...FORMER_TABLES];
  const found = await source.query(
    'SELECT n.name, to_regclass($1 || n.name) IS NOT NULL AS found FROM unnest($2::text[]) AS n (name)',
    [`${schema}.`, tables],
  );
  const exists = new Set(found.filter((row) => row['found'] === 't').map(({ name }) => name));
  if (!exists.has('meta')) {
    if (FORMER_TABLES.every((table) => exists.has(table))) throw former(schema);
    return 0;
  }
  const [meta] = await source.query(`SELECT schema_version AS version FROM ${quoted(schema)}.meta`);
  return checked(Number(meta?.['version'] ?? 0), schema, known);
}

async function migrateHere(
  connection: Connection,
  name: string,
  migrations: typeof MIGRATIONS,
): Promise<void> {
  const schema = quoted(name);
  const run = async (text: string, values: readonly (string | number)[] = []) =>
    connection.run(text, values, MIGRATION_MS);
  await run(`SET LOCAL statement_timeout = ${MIGRATION_MS}`);
  await run(`SET LOCAL lock_timeout = ${LOCK_MS}`);
  // One process at a time. It is released with the transaction, behind a connection pooler too.
  await run(`SELECT pg_advisory_xact_lock(${lockNumber(name, 'migration')})`);
  const { rows } = await run('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [name]);
  // Not IF NOT EXISTS, which needs the right to create one although there is nothing to do.
  if (rows.length === 0) await run(`CREATE SCHEMA ${schema}`);
  const known = await run('SELECT to_regclass($1) IS NOT NULL AS known', [`${name}.meta`]);
  let version = 0;
  if (known.rows[0]!['known'] === 't') {
    const meta = await run(`SELECT schema_version AS version FROM ${schema}.meta`);
    version = checked(Number(meta.rows[0]!['version']), name, migrations.length);
  }
  if (version === migrations.length) return;
  for (const step of migrations.slice(version)) await run(step(name));
  await run(
    `INSERT INTO ${schema}.meta (schema_version) VALUES ($1::integer)
     ON CONFLICT (single) DO UPDATE SET schema_version = excluded.schema_version`,
    [migrations.length],
  );
}

function checked(version: number, schema: string, known: number): number {
  if (version <= known) return version;
  throw optionsInvalid(
    `The schema "${schema}" has version ${version}, made by a newer nestjs-payments; this one knows versions up to ` +
      `${known}. Install the newer one again, or set another "schema" of postgresInbox.`,
  );
}

function former(schema: string): Error {
  return optionsInvalid(
    `The schema "${schema}" was made by an unreleased version of nestjs-payments, whose tables this one cannot read. ` +
      `If you no longer need its events, drop it: DROP SCHEMA "${schema}" CASCADE. Or set another "schema" of postgresInbox.`,
  );
}

function mayNot(error: unknown, schema: string): Error {
  return optionsInvalid(
    `The role of the database may not set up the schema "${schema}" (${describeError(error)}). Have an ` +
      `administrator run: CREATE SCHEMA IF NOT EXISTS "${schema}"; GRANT USAGE, CREATE ON SCHEMA "${schema}" ` +
      'TO the role that postgresInbox connects as.',
  );
}
