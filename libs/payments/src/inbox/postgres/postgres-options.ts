import type { Pool } from 'pg';
import { integerOption, optionsInvalid } from '../../errors/options-invalid.js';
import type { RunTransaction } from './transaction-runner.js';

/** Options of {@link postgresInbox}: one of `connectionString` and `pool`, and what has a default. */
export interface PostgresInboxOptions {
  /**
   * How to connect, e.g. `postgres://shop:secret@db.internal/shop`. Without it and without `pool`, the environment
   * variables of PostgreSQL apply (`PGHOST`, `PGUSER` and so on).
   */
  connectionString?: string;
  /**
   * The application's own pool of `pg`. The inbox does not close it. It makes one more connection with the pool's options,
   * to be notified of new deliveries.
   */
  pool?: Pool;
  /**
   * The schema of the inbox's tables. It is created if necessary. One to 63 of `a-z 0-9 _`, not a digit first. Default
   * `payments_inbox`.
   */
  schema?: string;
  /**
   * Connections at most, if the pool is the inbox's own. 3 to 500. Default 12. `context.commit` uses all but 4 of them, or
   * all but 2 if there are fewer than 12.
   */
  poolSize?: number;
  /**
   * Milliseconds until a statement is cancelled, those of `context.commit` on the inbox's own pool included. 100 to
   * 600,000. Default 10,000.
   */
  statementTimeoutMs?: number;
  /** Milliseconds to wait for a connection. 100 to 60,000. Default 5,000. */
  connectTimeoutMs?: number;
  /**
   * Milliseconds between two looks for work without a notification, which may be lost with a connection or a process. 100
   * to 60,000. Default 5,000.
   */
  pollMs?: number;
  /**
   * Whether each connection prepares frequent statements once, by name, which saves the database a fifth to a third of its
   * work. A pooler that gives every transaction another connection must support it (PgBouncer does since 1.21, with
   * `max_prepared_statements`). Default `true`; `false` with `pool`, since the inbox does not know what it connects to.
   */
  preparedStatements?: boolean;
  /** Runs `context.commit` in a transaction of the application's ORM or query builder. */
  runTransaction?: RunTransaction;
}

/** {@link PostgresInboxOptions}, complete. */
export interface ResolvedPostgresOptions {
  readonly connectionString: string | undefined;
  readonly pool: Pool | undefined;
  readonly schema: string;
  readonly poolSize: number;
  readonly statementTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly pollMs: number;
  readonly preparedStatements: boolean;
  readonly runTransaction: RunTransaction | undefined;
}

/** @throws PaymentsError `options_invalid`. */
export function resolvePostgresOptions(options: PostgresInboxOptions): ResolvedPostgresOptions {
  const { connectionString, pool, schema = 'payments_inbox', runTransaction } = options;
  if (connectionString !== undefined && pool !== undefined) {
    throw optionsInvalid('postgresInbox takes "connectionString" or "pool", not both.');
  }
  if (connectionString !== undefined && typeof connectionString !== 'string') {
    throw optionsInvalid('"postgresInbox connectionString" must be a text, e.g. postgres://…');
  }
  if (pool !== undefined && typeof (pool as { connect?: unknown } | null)?.connect !== 'function') {
    throw optionsInvalid('"postgresInbox pool" must be a Pool of the "pg" package.');
  }
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw optionsInvalid(
      '"postgresInbox schema" must be 1 to 63 of a-z, 0-9 and _, not a digit first. ' +
        'Leave it out for payments_inbox.',
    );
  }
  if (/^pg_|^information_schema$/.test(schema)) {
    throw optionsInvalid(`"postgresInbox schema" is "${schema}", which is PostgreSQL's own.`);
  }
  if (runTransaction !== undefined && typeof runTransaction !== 'function') {
    throw optionsInvalid(
      '"postgresInbox runTransaction" must be a function (work) => … that runs work in a transaction of your ORM.',
    );
  }
  const { preparedStatements = pool === undefined } = options;
  if (typeof preparedStatements !== 'boolean') {
    throw optionsInvalid('"postgresInbox preparedStatements" must be true or false.');
  }
  return Object.freeze({
    connectionString,
    pool,
    schema,
    preparedStatements,
    runTransaction,
    poolSize: integerOption('postgresInbox poolSize', options.poolSize, {
      default: 12,
      min: 3,
      max: 500,
      unit: 'connections',
    }),
    statementTimeoutMs: milliseconds('statementTimeoutMs', options, 10_000, 600_000),
    connectTimeoutMs: milliseconds('connectTimeoutMs', options, 5000, 60_000),
    pollMs: milliseconds('pollMs', options, 5000, 60_000),
  });
}

function milliseconds(
  name: 'statementTimeoutMs' | 'connectTimeoutMs' | 'pollMs',
  options: { readonly [N in typeof name]?: number | undefined },
  standard: number,
  max: number,
): number {
  return integerOption(`postgresInbox ${name}`, options[name], {
    default: standard,
    min: 100,
    max,
    unit: 'milliseconds',
  });
}
