import { ModuleLogger } from '../../errors/module-logger.js';
import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { commitOnce } from './sql/commit.js';
import type { EngineHooks, SqliteEngine } from './sqlite-engine.js';
import type { OperationName } from './sqlite-operations.js';
import type { SqliteSettings } from './sqlite-options.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { SqliteClient } from './thread/client.js';
import { loadDriver, toError, toFailure, unavailable } from './thread/connection.js';
import type { SqliteConnection, StoredClock } from './thread/connection.js';
import {
  isOldSqlite,
  oldSqliteReason,
  openCommitter,
  sharedFilesWarning,
} from './thread/database-file.js';

/** How many milliseconds the event loop runs commits before it does other work. */
const TURN_MS = 10;

/** A commit that waits for its turn. */
interface WaitingCommit {
  /** Tries the commit; returns `false` if another connection has the lock. */
  readonly attempt: () => boolean;
  readonly reject: (error: unknown) => void;
  /** By `performance.now()`: real time, because the commit waits for a lock. */
  readonly deadline: number;
}

/**
 * A database file. The thread runs the operations. The callbacks of `context.commit` run on the event loop, which commits on a
 * connection of its own. Before it commits, it requests a window from the thread, so that event loop and thread never wait for
 * each other's lock. The thread makes the commits durable, together with its own.
 */
export class SqliteFile implements SqliteEngine {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #client: SqliteClient;
  #connection: SqliteConnection | undefined;
  /** The commits that have not resolved. */
  readonly #commits = new Set<Promise<unknown>>();
  #waiting: WaitingCommit[] = [];
  #turning = false;

  constructor(
    private readonly settings: SqliteSettings,
    private readonly hooks: EngineHooks,
  ) {
    this.#client = new SqliteClient(settings, hooks);
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

  run(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    return this.#client.call(name, args);
  }

  listen(on: boolean): void {
    this.#client.listen(on);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#commits);
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }

  /** Resolves when the effects of `work` and the outcome of the attempt are on the disk. */
  commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    const commit = this.#commit(lease, work).finally(() => this.#commits.delete(commit));
    this.#commits.add(commit);
    return commit;
  }

  async #commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    const committed = await new Promise<CommitResult<R>>((resolve, reject) => {
      const attempt = () => {
        const outcome = commitOnce(this.#connection!, lease, work, this.hooks.times());
        if (outcome !== 'busy') resolve(outcome);
        return outcome !== 'busy';
      };
      const deadline = performance.now() + this.settings.busyTimeoutMs;
      this.#waiting.push({ attempt, reject, deadline });
      void this.#takeTurns();
    });
    await this.#makeDurable();
    if (committed.nextDue) this.hooks.onWake();
    return committed;
  }

  async #makeDurable(): Promise<void> {
    const { unexpectedEnds } = this.#client;
    try {
      await this.#client.call('sync', []).catch((error: unknown) => {
        // Tries again only if the thread ended. After an error of the disk, a second fsync guarantees nothing.
        if (this.#client.unexpectedEnds === unexpectedEnds) throw error;
        return this.#client.call('sync', []);
      });
    } catch (error) {
      throw unavailable(
        'committed the effects together with the delivery, but a power loss might still undo both: ' +
          (error as Error).message,
      );
    }
  }

  async #takeTurns(): Promise<void> {
    if (this.#turning) return;
    this.#turning = true;
    while (this.#waiting.length > 0) {
      try {
        await this.#client.openWindow();
      } catch (error) {
        for (const { reject } of this.#waiting.splice(0)) reject(error);
        break;
      }
      const locked = this.#turn();
      this.#client.closeWindow();
      if (locked) {
        await new Promise((resolve) => {
          setTimeout(resolve, 1 + Math.random() * 4);
        });
      }
    }
    this.#turning = false;
  }

  /** Runs waiting commits in order, for {@link TURN_MS}; returns whether another process has the lock. */
  #turn(): boolean {
    const end = performance.now() + TURN_MS;
    while (this.#waiting.length > 0 && performance.now() < end) {
      const { attempt, reject, deadline } = this.#waiting[0]!;
      try {
        if (!attempt()) {
          if (performance.now() < deadline) return true;
          throw unavailable(
            `could not commit: another connection locked the file for ${this.settings.busyTimeoutMs} ms. ` +
              'Look for a long transaction.',
          );
        }
      } catch (error) {
        reject(error);
      }
      this.#waiting.shift();
    }
    return false;
  }
}
