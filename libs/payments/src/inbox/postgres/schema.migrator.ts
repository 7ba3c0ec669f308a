import { createHash } from 'node:crypto';
import { describeThrown } from '../../events/thrown.js';
import { optionsInvalid } from '../../payments.validation.js';
import type { Connection } from './database.connection.js';
import type { ConnectionSource } from './connection.source.js';
import { sqlStateOf, unavailable } from './database.failure.js';
import { bulk } from './schema.bulk.js';
import { claims } from './schema.claims.js';
import { freshness } from './schema.freshness.js';
import { observations } from './schema.observations.js';
import { receipts } from './schema.receipts.js';
import { settlements } from './schema.settlements.js';
import { tables } from './schema.tables.js';
import { tallies } from './schema.tallies.js';

/**
 * What leads from each version of the schema to the next. Only ever added to: an instance of the version
 * before may run on while this one migrates, so a step keeps what that one uses.
 */
const MIGRATIONS: readonly ((schema: string) => string)[] = [
  (schema) => tables(schema) + tallies(schema),
  (schema) => observations(schema),
  // The functions are replaced by their latest text, so it stands with the latest step that changed them.
  (schema) => bulk(schema) + claims(schema) + settlements(schema),
  (schema) => freshness(schema) + receipts(schema),
];

/** For all steps together, the wait for another instance that is at them included. */
const MIGRATION_MS = 300_000;

/**
 * Brings the schema to the version this code knows. Any number of instances may do so at the same time.
 *
 * @throws PaymentsError `options_invalid` where the role may not, or where the schema is a newer one's.
 */
export async function migrate(source: ConnectionSource, schema: string): Promise<void> {
  try {
    // Most starts find it as it should be, and a role that may not create anything is enough for them.
    if ((await versionOf(source, schema)) === MIGRATIONS.length) return;
    // Begun again after a deadlock with an instance that works meanwhile, which begins again too.
    await source.transaction((connection) => migrateHere(connection, schema));
  } catch (error) {
    if (sqlStateOf(error) !== '42501') throw unavailable(error);
    throw optionsInvalid(
      `The database's role may not set up the inbox's schema "${schema}" (${describeThrown(error)}). Have an ` +
        `administrator run: CREATE SCHEMA IF NOT EXISTS "${schema}"; GRANT USAGE, CREATE ON SCHEMA "${schema}" ` +
        'TO the role that postgresInbox connects as.',
    );
  }
}

async function versionOf(source: ConnectionSource, schema: string): Promise<number> {
  const known = await source.query('SELECT to_regclass($1) IS NOT NULL AS known', [
    `${schema}.migrations`,
  ]);
  if (known[0]!['known'] !== 't') return 0;
  const rows = await source.query(
    `SELECT max(version) AS version FROM ${quoted(schema)}.migrations`,
  );
  return checked(Number(rows[0]!['version'] ?? 0), schema);
}

async function migrateHere(connection: Connection, schema: string): Promise<void> {
  const name = quoted(schema);
  const run = async (text: string, values: readonly (string | number)[] = []) =>
    connection.run(text, values, MIGRATION_MS);
  await run(`SET LOCAL statement_timeout = ${MIGRATION_MS}`);
  // One at a time; it is let go with the transaction, behind a connection pooler too.
  await run(`SELECT pg_advisory_xact_lock(${lockOf(schema)})`);
  const { rows } = await run('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [schema]);
  // Asked before, because IF NOT EXISTS wants the right to create one although there is nothing to do.
  if (rows.length === 0) await run(`CREATE SCHEMA ${name}`);
  await run(
    `CREATE TABLE IF NOT EXISTS ${name}.migrations
       (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
  );
  const applied = await run(`SELECT max(version) AS version FROM ${name}.migrations`);
  const version = checked(Number(applied.rows[0]!['version'] ?? 0), schema);
  for (const [index, step] of MIGRATIONS.entries()) {
    if (index < version) continue;
    await run(step(name));
    await run(`INSERT INTO ${name}.migrations (version) VALUES ($1)`, [index + 1]);
  }
}

function checked(version: number, schema: string): number {
  if (version <= MIGRATIONS.length) return version;
  throw optionsInvalid(
    `The inbox's schema "${schema}" is of version ${version}, made by a newer nestjs-payments; this one knows ` +
      `versions up to ${MIGRATIONS.length}. Install the newer one again, or give this application a "schema" of its own.`,
  );
}

function lockOf(schema: string): string {
  const hash = createHash('sha256').update(`nestjs-payments inbox ${schema}`).digest();
  return hash.readBigInt64BE().toString();
}

/** A schema's name as it stands in a statement. The option's check leaves nothing in it to escape. */
export function quoted(schema: string): string {
  return `"${schema}"`;
}
