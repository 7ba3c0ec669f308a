import type { PoolClient } from 'pg';

/**
 * What `context.commit` passes to its work: the `pg` client with an open transaction. Do not run `BEGIN`, `COMMIT` or
 * `ROLLBACK` on it and do not release it: the inbox does.
 */
export type PostgresTransaction = PoolClient;

/** An open transaction of the application, as a {@link RunTransaction} passes it to the inbox. */
export interface OpenTransaction {
  /** The transaction of the ORM or query builder. `context.commit` passes it to its work. */
  readonly tx: unknown;
  /**
   * Runs one statement in the transaction. It is a `SELECT` with the placeholders `$1`, `$2`, …, once each and in this
   * order. Resolves with its rows, or with an object that has them under `rows`.
   */
  query(
    text: string,
    values: string[],
  ): Promise<readonly unknown[] | { readonly rows: readonly unknown[] }>;
}

/**
 * Opens a transaction of the application's ORM or query builder, calls `work` once with it, commits if `work` resolves
 * and rolls back if it rejects. It must be on the database of the inbox. An error that `work` throws reaches the handler
 * unchanged.
 *
 * @example
 * ```ts
 * // TypeORM
 * const runTransaction: RunTransaction = (work) =>
 *   dataSource.transaction((tx) => work({ tx, query: (text, values) => tx.query(text, values) }));
 * ```
 *
 * The ORM guide has more: https://github.com/nestjs-payments/nestjs-payments/blob/main/docs/orm.md
 */
export type RunTransaction = <R>(work: (open: OpenTransaction) => Promise<R>) => Promise<R>;
