import { Logger } from '@nestjs/common';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { CommitResult, Lease } from '../store/inbox-store.js';
import { SqliteCommitter } from './commit/committer.js';
import type { SqliteTransaction } from './commit/transaction.js';
import { sharedFilesWarning } from './file-modes.js';
import { toError, toFailure, unavailable } from './sqlite-failure.js';
import type { SqliteSettings } from './sqlite-options.js';
import { StoreClock } from './store-clock.js';
import { SqliteClient } from './thread/client.js';
import { openCommitter } from './thread/connection.js';
import type { SqliteConnection } from './thread/connection.js';
import { isOldSqlite, loadDriver, oldSqliteReason } from './thread/driver.js';
import type { AnswerOf, OperationName, RequestOf } from './thread/operations.js';

/** An open file: the thread that has it, the connection of commits, the clock, and those who listen. */
export class SqliteSession {
  readonly #logger = new Logger('PaymentInbox');
  readonly #listeners = new Set<() => void>();
  readonly #clock: StoreClock;
  readonly #client: SqliteClient;
  readonly #committer: SqliteCommitter;
  #connection: SqliteConnection | undefined;
  #stage: 'new' | 'open' | 'closed' = 'new';

  constructor(
    private readonly settings: SqliteSettings,
    runtime: PaymentsRuntime,
  ) {
    this.#clock = new StoreClock(runtime);
    this.#client = new SqliteClient(
      settings,
      () => this.#clock.read(),
      () => this.wake(),
      (clock) => this.#clock.advanceTo(clock),
    );
    this.#committer = new SqliteCommitter(
      this.#client,
      () => this.#connection!,
      settings.busyTimeoutMs,
      () => this.#clock.read(),
    );
  }

  async open(): Promise<void> {
    const { sqliteVersion, clock } = await this.#client.open();
    if (isOldSqlite(sqliteVersion)) {
      this.#logger.warn(
        `${oldSqliteReason(sqliteVersion)}. It is used because of "allowOldSqlite".`,
      );
    }
    this.#clock.start(clock);
    try {
      this.#connection = openCommitter(await loadDriver(), this.settings.file);
    } catch (error) {
      await this.#client.close();
      throw toError(toFailure(error));
    }
    const warning = sharedFilesWarning(this.settings.file);
    if (warning !== null) this.#logger.warn(warning);
    this.#stage = 'open';
    // The other processes learn of this one's clock. If it fails, the first write stores the clock.
    this.ask('sync', null).catch(() => {});
  }

  async close(): Promise<void> {
    this.#stage = 'closed';
    await this.#committer.idle();
    this.#listeners.clear();
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }

  /** Runs an operation in the thread. */
  async ask<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
  ): Promise<AnswerOf<Name>> {
    this.#check();
    return this.#client.call(name, request);
  }

  /** Runs `work` on the event loop, and settles the lease, in one transaction. */
  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    this.#check();
    return this.#committer.commit(lease, work);
  }

  onWake(listener: () => void): () => void {
    // A function of its own, so that one listener added twice is two.
    const added = () => listener();
    if (this.#listeners.size === 0) this.#client.listen(true);
    this.#listeners.add(added);
    return () => {
      if (this.#listeners.delete(added) && this.#listeners.size === 0) this.#client.listen(false);
    };
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #check(): void {
    if (this.#stage === 'new') throw unavailable('is not open yet.');
    if (this.#stage === 'closed') throw unavailable('is closed.');
  }
}
