import { AsyncLocalStorage } from 'node:async_hooks';
import { ModuleLogger } from '../../errors/module-log.js';
import { Batcher } from '../../inbox/store/batcher.js';
import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { commitOnce } from './sql/commit.js';
import type { EngineHooks, SqliteEngine } from './sqlite-engine.js';
import type { OperationName } from './sqlite-operations.js';
import type { SqliteSettings } from './sqlite-options.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { isWrite } from './thread/batch.js';
import { SqliteClient } from './thread/client.js';
import { loadDriver, toError, toFailure, unavailable } from './thread/connection.js';
import type { SqliteConnection, StoredClock } from './thread/connection.js';
import {
  isOldSqlite,
  oldSqliteReason,
  openCommitter,
  sharedFilesWarning,
} from './thread/database-file.js';
import type { Call, Outcome } from './thread/messages.js';
import { toSent } from './thread/sent-values.js';

/** How many milliseconds the event loop runs commits before it does other work. */
const TURN_MS = 10;

/** A write that waits for the thread. */
interface Write extends Call {
  /** When it is too late for the thread to begin, by `performance.now()`: real time, because it waits for a disk. */
  readonly until: number;
  /** A commit on the event loop, before the write. Returns whether it has committed, so that the write must make it durable. */
  readonly commit?: (turnEnds: number) => boolean;
}

/**
 * A database file. The thread runs the operations. While it runs writes, further writes gather for its next transaction. The
 * callbacks of `context.commit` run on the event loop, which commits on a connection of its own between two transactions of the
 * thread, so that event loop and thread never wait for each other's lock. The next transaction makes these commits durable.
 */
export class SqliteFile implements SqliteEngine {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #client: SqliteClient;
  #connection: SqliteConnection | undefined;
  readonly #writes: Batcher<Write, Outcome>;
  /** The commits that have not resolved. */
  readonly #commits = new Set<Promise<unknown>>();

  constructor(
    private readonly settings: SqliteSettings,
    private readonly hooks: EngineHooks,
  ) {
    this.#client = new SqliteClient(settings, hooks);
    this.#writes = new Batcher<Write, Outcome>({
      call: (writes) => this.#write(writes),
      maxCalls: 1,
      bytesOf,
      isValueError: (error) => error instanceof TypeError,
    });
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

  async run(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    const call = { name, args: args.map(toSent) };
    const [outcome] = await (isWrite(name) ? this.#add(call) : this.#client.run([call]));
    if ('failure' in outcome!) throw toError(outcome.failure);
    return outcome!.value;
  }

  listen(on: boolean): void {
    this.#client.listen(on);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#commits);
    await this.#writes.drained();
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
    const { busyTimeoutMs } = this.settings;
    /** When the commit gives up if another connection has had the lock since. */
    let end = Infinity;
    // The write that a commit shares its turn with may be of another handler.
    const inHandlersContext = AsyncLocalStorage.snapshot();
    const attempt = new CommitAttempt(() =>
      commitOnce(
        this.#connection!,
        lease,
        (tx) => inHandlersContext(() => work(tx)),
        this.hooks.times(),
      ),
    );
    while (!attempt.ended) {
      if (performance.now() > end) {
        throw unavailable(
          `could not commit: another connection locked the file for ${busyTimeoutMs} ms. Look for a long transaction.`,
        );
      }
      await this.#durably(attempt);
      if (attempt.isBusy) {
        end = Math.min(end, performance.now() + busyTimeoutMs);
        await pauseMs(1 + Math.random() * 4);
      } else end = Infinity;
    }
    const committed = attempt.result();
    if (committed.nextDue) this.hooks.onWake();
    return committed;
  }

  /** Makes an attempt in the next turn. If it commits, resolves when the commit is on the disk. */
  async #durably(attempt: CommitAttempt<unknown>): Promise<void> {
    const { unexpectedEnds } = this.#client;
    const sync = { name: 'sync', args: [] } as const;
    try {
      const run = () => this.#add({ ...sync, commit: (turnEnds) => attempt.run(turnEnds) });
      const [outcome] = await run().catch((error: unknown) => {
        // Again only if the thread ended. After an error of the disk, a second fsync guarantees nothing.
        if (this.#client.unexpectedEnds === unexpectedEnds) throw error;
        return run();
      });
      if ('failure' in outcome!) throw toError(outcome.failure);
    } catch (error) {
      if (attempt.failed) return;
      if (!attempt.ended) throw error;
      throw unavailable(
        'committed the effects together with the delivery, but a power loss might still undo both: ' +
          (error as Error).message,
      );
    }
  }

  #add(write: Omit<Write, 'until'>): Promise<Outcome[]> {
    const until = performance.now() + 2 * this.settings.busyTimeoutMs + 5000;
    return this.#writes.add([{ ...write, until }]);
  }

  /** Runs the commits on the event loop, then the writes in the thread. */
  async #write(writes: readonly Write[]): Promise<Outcome[]> {
    await this.#client.ready;
    const now = performance.now();
    const calls: Call[] = [];
    const places = writes.map(({ name, args, until, commit }) => {
      if (until < now) return LATE;
      if (commit?.(now + TURN_MS) === false) return NOTHING;
      return calls.push({ name, args }) - 1;
    });
    const outcomes = calls.length === 0 ? [] : await this.#client.run(calls);
    return places.map((place) => (typeof place === 'number' ? outcomes[place]! : place));
  }
}

const NOTHING: Outcome = { value: null };
const LATE: Outcome = {
  failure: {
    code: 'inbox_unavailable',
    message:
      'The SQLite inbox is too slow: the operation was not begun in time, and takes no effect.',
  },
};

/** The attempts of one commit, until one has an outcome. */
class CommitAttempt<R> {
  /** Whether another connection had the lock. */
  isBusy = false;
  #outcome: { readonly value: CommitResult<R> } | { readonly error: unknown } | undefined;

  constructor(private readonly commit: () => CommitResult<R> | 'busy') {}

  get failed(): boolean {
    return this.#outcome !== undefined && 'error' in this.#outcome;
  }

  /** Whether the commit succeeded or failed. */
  get ended(): boolean {
    return this.#outcome !== undefined;
  }

  /** Tries, unless the turn is over. Returns whether the commit has succeeded. */
  run(turnEnds: number): boolean {
    this.isBusy = false;
    if (this.#outcome === undefined && performance.now() < turnEnds) {
      try {
        const value = this.commit();
        if (value === 'busy') this.isBusy = true;
        else this.#outcome = { value };
      } catch (error) {
        this.#outcome = { error };
      }
    }
    return this.ended && !this.failed;
  }

  /** @throws the error of the commit. */
  result(): CommitResult<R> {
    if (this.#outcome === undefined || 'error' in this.#outcome) throw this.#outcome?.error;
    return this.#outcome.value;
  }
}

/** Size of the bodies in a call. */
function bytesOf({ name, args }: Call): number {
  if (name !== 'receive') return 0;
  const [events] = args as [readonly { readonly raw: Uint8Array }[]];
  return events.reduce((sum, { raw }) => sum + raw.byteLength, 0);
}

function pauseMs(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
