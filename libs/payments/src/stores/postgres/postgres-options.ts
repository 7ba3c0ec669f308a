import type { Pool, PoolClient } from 'pg';
import {
  checkFields,
  mustBe,
  optional,
  optionsInvalid,
  whole,
} from '../../errors/option-checks.js';
import type { OptionChecks } from '../../errors/option-checks.js';

/**
 * The transaction that `context.commit` passes to its work: the `pg` client with an open transaction. Do not run
 * `BEGIN`, `COMMIT` or `ROLLBACK` on the client and do not release the client, because the inbox does this.
 */
export type PostgresTransaction = PoolClient;

/** An open transaction of the application, as a {@link RunTransaction} passes it to the inbox. */
export interface OpenTransaction {
  /** The transaction of the ORM or query builder. `context.commit` passes this transaction to its `work`. */
  readonly tx: unknown;
  /**
   * Runs one statement in the transaction. The statement is a `SELECT` with the placeholders `$1`, `$2`, …, each once
   * and in this order. Resolves with the rows, or with an object that has the rows under `rows`.
   */
  query(
    text: string,
    values: string[],
  ): Promise<readonly unknown[] | { readonly rows: readonly unknown[] }>;
}

/**
 * Opens a transaction of the application's ORM or query builder, calls `work` once with the transaction, commits if
 * `work` resolves and rolls back if `work` rejects. The transaction must be on the database of the inbox. An error that
 * `work` throws reaches the handler unchanged.
 *
 * @example
 * ```ts
 * // TypeORM
 * const runTransaction: RunTransaction = (work) =>
 *   dataSource.transaction((tx) => work({ tx, query: (text, values) => tx.query(text, values) }));
 * ```
 *
 * The ORM guide has more examples: https://github.com/nestjs-payments/nestjs-payments/blob/main/docs/orm.md
 */
export type RunTransaction = <R>(work: (open: OpenTransaction) => Promise<R>) => Promise<R>;

/**
 * Options of {@link postgresInbox}. Use at most one of `connectionString` and `pool`; all other options have defaults.
 */
export interface PostgresInboxOptions {
  /**
   * The URL of the database, such as `postgres://shop:secret@db.internal/shop`. Default: the environment variables of
   * PostgreSQL (`PGHOST`, `PGUSER` and so on), if there is no `pool` either.
   */
  connectionString?: string;
  /**
   * The application's own pool of `pg`, which the inbox does not close. Add a listener for the event `error` of the
   * pool. Without this listener, the process exits if the server cuts a connection after the inbox has closed. To
   * receive notifications of new deliveries, the inbox opens one more connection, outside of the pool but with the
   * options of the pool. Default: the inbox creates a pool of its own.
   */
  pool?: Pool;
  /**
   * The schema of the inbox's tables, which the inbox creates if necessary. 1 to 63 characters of `a-z 0-9 _`, and the
   * first is not a digit. Default `payments_inbox`.
   */
  schema?: string;
  /**
   * The maximum number of connections of the inbox's own pool. 3 to 500. Default 12. `context.commit` uses all but 4
   * connections, or all but 2 if the maximum is less than 12.
   */
  poolSize?: number;
  /**
   * Milliseconds until a statement is cancelled. On the inbox's own pool, statements of `context.commit` are cancelled
   * too. 100 to 600,000. Default 10,000.
   */
  statementTimeoutMs?: number;
  /** Milliseconds to wait for a connection. 100 to 60,000. Default 5,000. */
  connectTimeoutMs?: number;
  /**
   * Milliseconds for which the start of the application waits for a database that cannot be reached, is starting or has
   * no free connection. 0 to 600,000; 0 means one try. If this time passes, or if any other error occurs, the
   * application does not start. Default 30,000.
   */
  startTimeoutMs?: number;
  /**
   * Milliseconds after which each process looks for due deliveries again, because a notification may be lost if a
   * connection is cut or a process exits. 100 to 60,000. Default 5,000.
   */
  pollMs?: number;
  /**
   * Whether each connection prepares frequent statements once, by name, which saves the database a fifth to a third of its
   * work. A pooler that gives each transaction another connection must support prepared statements (PgBouncer does since
   * 1.21, with `max_prepared_statements`). Default `true`; with `pool` it is `false`, because the pool may connect to a
   * pooler.
   */
  preparedStatements?: boolean;
  /**
   * Runs `context.commit` in a transaction of the application's ORM or query builder. Default: in a transaction on a
   * connection of `pg`.
   */
  runTransaction?: RunTransaction;
}

export type ResolvedPostgresOptions = ReturnType<typeof resolvePostgresOptions>;

const MS = 'milliseconds';
const CHECKS = {
  connectionString: optional<string>(
    'a text, e.g. postgres://…',
    (value) => typeof value === 'string',
  ),
  pool: optional<Pool>('a Pool of the "pg" package', (pool) => typeof pool.connect === 'function'),
  schema: checkSchema,
  poolSize: whole({ default: 12, min: 3, max: 500, unit: 'connections' }),
  statementTimeoutMs: whole({ default: 10_000, min: 100, max: 600_000, unit: MS }),
  connectTimeoutMs: whole({ default: 5000, min: 100, max: 60_000, unit: MS }),
  startTimeoutMs: whole({ default: 30_000, min: 0, max: 600_000, unit: MS }),
  pollMs: whole({ default: 5000, min: 100, max: 60_000, unit: MS }),
  preparedStatements: optional<boolean>('true or false', (value) => typeof value === 'boolean'),
  runTransaction: optional<RunTransaction>(
    'a function (work) => … that runs work in a transaction of your ORM',
    (value) => typeof value === 'function',
  ),
} satisfies OptionChecks<PostgresInboxOptions>;

/** @throws PaymentsError `options_invalid`. */
export function resolvePostgresOptions(options: PostgresInboxOptions) {
  const checked = checkFields('postgresInbox', options, CHECKS);
  const { connectionString, pool, preparedStatements = pool === undefined } = checked;
  if (connectionString !== undefined && pool !== undefined) {
    throw optionsInvalid(
      'postgresInbox takes "connectionString" or "pool", not both. Remove one of them.',
    );
  }
  return Object.freeze({ ...checked, preparedStatements });
}

function checkSchema(name: string, schema: unknown = 'payments_inbox'): string {
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    const hint = 'It must not start with a digit. Leave it out for payments_inbox.';
    throw mustBe(name, '1 to 63 of a-z, 0-9 and _', schema, hint);
  }
  if (/^pg_|^information_schema$/.test(schema)) {
    throw optionsInvalid(
      `"${name}" is "${schema}", which is a schema of PostgreSQL itself. Use another name.`,
    );
  }
  return schema;
}
