import { ModuleLogger } from '../../errors/module-logger.js';
import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { SqliteCommitter } from './sql/commit.js';
import type { ArgumentsOf, OperationName, ResultOf } from './sqlite-operations.js';
import type { SqliteSettings } from './sqlite-options.js';
import type { EngineHooks, SqliteEngine } from './sqlite-engine.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { SqliteClient } from './thread/client.js';
import { loadDriver, toError, toFailure } from './thread/connection.js';
import type { SqliteConnection, StoredClock } from './thread/connection.js';
import {
  isOldSqlite,
  oldSqliteReason,
  openCommitter,
  sharedFilesWarning,
} from './thread/database-file.js';

/** A database file: the thread that runs the operations, and the connection for commits on the event loop. */
export class SqliteFile implements SqliteEngine {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #client: SqliteClient;
  readonly #committer: SqliteCommitter;
  #connection: SqliteConnection | undefined;

  constructor(
    private readonly settings: SqliteSettings,
    private readonly hooks: EngineHooks,
  ) {
    this.#client = new SqliteClient(settings, hooks.times, hooks.onWake, hooks.onClock);
    this.#committer = new SqliteCommitter(
      this.#client,
      () => this.#connection!,
      settings.busyTimeoutMs,
      hooks.times,
    );
  }

  async open(): Promise<StoredClock> {
    const { sqliteVersion, clock } = await this.#client.open();
    if (isOldSqlite(sqliteVersion)) {
      this.#logger.warn(
        `${oldSqliteReason(sqliteVersion)}. The inbox uses it because of "allowOldSqlite".`,
      );
    }
    try {
      this.#connection = openCommitter(await loadDriver(), this.settings.file);
    } catch (error) {
      await this.#client.close();
      throw toError(toFailure(error));
    }
    const warning = sharedFilesWarning(this.settings.file);
    if (warning !== null) this.#logger.warn(warning);
    return clock;
  }

  run<Name extends OperationName>(name: Name, ...args: ArgumentsOf<Name>): Promise<ResultOf<Name>> {
    return this.#client.call(name, ...args);
  }

  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    const committed = await this.#committer.commit(lease, work);
    if (committed.nextDue) this.hooks.onWake();
    return committed;
  }

  listen(on: boolean): void {
    this.#client.listen(on);
  }

  async close(): Promise<void> {
    await this.#committer.idle();
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }
}
