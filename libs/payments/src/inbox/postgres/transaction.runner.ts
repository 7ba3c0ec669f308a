import type { ClientBase } from 'pg';

/**
 * What `context.commit` hands to its work: the `pg` client, in the middle of a transaction. Run statements on
 * it; `BEGIN`, `COMMIT` and `ROLLBACK` are the inbox's.
 */
export type PostgresTransaction = ClientBase;

/** What a {@link RunTransaction} lends the inbox while its transaction is open. */
export interface LentTransaction<T> {
  /** What `context.commit` hands to its work: the query builder's or the ORM's own transaction. */
  readonly native: T;
  /**
   * Runs one statement in the transaction: a `SELECT`, with `$1`, `$2`, … each used once and in order, and
   * texts for values. Resolves with its rows, or with an object that has them under `rows`.
   */
  query(
    text: string,
    values: readonly string[],
  ): Promise<readonly unknown[] | { readonly rows: readonly unknown[] }>;
}

/**
 * Runs work in a transaction of the application's own: opens one, calls `work` once with it, commits when it
 * resolves and rolls back when it rejects. It must be on the database that the inbox is in. What `work`
 * rejects with is rethrown to the handler, whatever the runner makes of it.
 *
 * @example
 * ```ts
 * // Kysely
 * const runTransaction: RunTransaction<Transaction<Tables>> = (work) =>
 *   db.transaction().execute((trx) =>
 *     work({
 *       native: trx,
 *       query: (text, values) => trx.executeQuery(CompiledQuery.raw(text, [...values])),
 *     }),
 *   );
 * ```
 *
 * The ORM guide has more: https://github.com/nestjs-payments/nestjs-payments/blob/main/docs/orm.md
 */
export type RunTransaction<T> = <R>(work: (lent: LentTransaction<T>) => Promise<R>) => Promise<R>;
