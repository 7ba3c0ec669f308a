import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout } from 'node:timers/promises';
import { ModuleLogger } from '../../errors/module-log.js';
import { Batcher } from '../../inbox/store/batcher.js';
import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { commitOnce } from './sql/commit.js';
import type { SqliteTransaction } from './sql/commit.js';
import type { OperationName } from './sqlite-operations.js';
import type { SqliteSettings } from './sqlite-options.js';
import type { StoreClock } from './store-clock.js';
import { isWrite } from './thread/batch.js';
import { SqliteClient } from './thread/client.js';
import { loadDriver, toError, toFailure, unavailable } from './thread/connection.js';
import type { SqliteConnection, StoredClock } from './thread/connection.js';
import { openCommitter } from './thread/database-file.js';
import { toSent } from './thread/messages.js';
import type { Call, Outcome } from './thread/messages.js';

/** The length of a turn in milliseconds. In a turn, the event loop runs commits before it does other work. */
const TURN_MS = 10;

/** A write that waits for the thread. */
interface Write extends Call {
  /**
   * The time after which the thread must not begin the write, on the clock `performance.now()`. A clock of the runtime
   * is not used, because the write waits for a real disk.
   */
  readonly until: number;
  /**
   * Runs a commit on the event loop, before the write. Returns whether the commit succeeded. The write must make a
   * successful commit durable.
   */
  readonly commit?: (turnEnds: number) => boolean;
}

/**
 * A store on a database file. A thread runs the operations. While the thread runs writes, further writes are collected
 * for its next transaction. The callbacks of `context.commit` run on the event loop. The event loop commits on its own
 * connection between two transactions of the thread, so that the event loop and the thread never wait for each other's
 * lock. The next transaction of the thread makes these commits durable.
 */
export class SqliteFile {
  readonly #client: SqliteClient;
  #connection: SqliteConnection | undefined;
  readonly #writes: Batcher<Write, Outcome>;
  readonly #commits = new Set<Promise<unknown>>();

  constructor(
    private readonly settings: SqliteSettings,
    private readonly clock: StoreClock,
    private readonly onWake: () => void,
  ) {
    this.#client = new SqliteClient(settings, clock, onWake);
    this.#writes = new Batcher<Write, Outcome>({
      call: (writes) => this.#write(writes),
      maxCalls: 1,
      bytesOf,
      isValueError: (error) => error instanceof TypeError,
    });
  }

  async open(): Promise<StoredClock> {
    const { warnings, clock } = await this.#client.open();
    try {
      this.#connection = openCommitter(await loadDriver(), this.settings.file);
    } catch (error) {
      await this.#client.close();
      throw toError(toFailure(error));
    }
    for (const warning of warnings) new ModuleLogger('PaymentInbox').warn(warning);
    return clock;
  }

  async run(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    const call = { name, args: args.map(toSent) };
    const [outcome] = await (isWrite(name) ? this.#add(call) : this.#client.run([call]));
    if ('failure' in outcome!) throw toError(outcome.failure);
    return outcome!.value;
  }

  /** Waits for the operations and commits that were requested before this call, and closes the database. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#commits);
    await this.#writes.drained();
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }

  /**
   * Runs `work` on the event loop and settles the lease, in one transaction. Resolves when the effects of `work` and the
   * outcome of the attempt are on the disk.
   */
  commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    const commit = this.#commit(lease, work).finally(() => this.#commits.delete(commit));
    this.#commits.add(commit);
    return commit;
  }

  async #commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    const { busyTimeoutMs } = this.settings;
    // The commit may run in the async context of another handler, if a write of that handler is in the same turn.
    const inHandlersContext = AsyncLocalStorage.snapshot();
    const attempt: CommitAttempt<R> = {};
    /** Tries to commit, unless the turn is over. Returns whether the commit has succeeded. */
    const tryOnce = (turnEnds: number): boolean => {
      attempt.isBusy = false;
      if (attempt.result === undefined && !attempt.failure && performance.now() < turnEnds) {
        try {
          const inContext = (tx: SqliteTransaction) => inHandlersContext(() => work(tx));
          const result = commitOnce(this.#connection!, lease, inContext, this.clock.read());
          if (result === 'busy') attempt.isBusy = true;
          else attempt.result = result;
        } catch (error) {
          attempt.failure = { error };
        }
      }
      return attempt.result !== undefined;
    };
    /** The time when the commit gives up, if another connection keeps the lock until then. */
    let end = Infinity;
    while (attempt.result === undefined) {
      if (performance.now() > end) {
        throw unavailable(
          `could not commit, because another connection locked the file for ${busyTimeoutMs} ms. ` +
            'Look for a long transaction.',
        );
      }
      await this.#durably(attempt, tryOnce);
      if (attempt.failure) throw attempt.failure.error;
      if (attempt.isBusy) {
        end = Math.min(end, performance.now() + busyTimeoutMs);
        await setTimeout(1 + Math.random() * 4);
      } else end = Infinity;
    }
    if (attempt.result.nextDue) this.onWake();
    return attempt.result;
  }

  /** Tries to commit in the next turn. If the commit succeeds, resolves when the commit is on the disk. */
  async #durably<R>(
    attempt: CommitAttempt<R>,
    commit: (turnEnds: number) => boolean,
  ): Promise<void> {
    const { unexpectedEnds } = this.#client;
    const run = () => this.#add({ name: 'sync', args: [], commit });
    try {
      const [outcome] = await run().catch((error: unknown) => {
        // Repeats the write only if the thread ended. After an error of the disk, a second fsync guarantees nothing.
        if (this.#client.unexpectedEnds === unexpectedEnds) throw error;
        return run();
      });
      if ('failure' in outcome!) throw toError(outcome.failure);
    } catch (error) {
      if (attempt.failure) return;
      if (attempt.result === undefined) throw error;
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
      'The SQLite inbox is too slow. The operation did not begin in time and has no effect. ' +
      'Check the load of the disk.',
  },
};

interface CommitAttempt<R> {
  result?: CommitResult<R>;
  failure?: { readonly error: unknown };
  /** Whether another connection had the lock at the last try. */
  isBusy?: boolean;
}

function bytesOf({ name, args }: Call): number {
  if (name !== 'receive') return 0;
  const [events] = args as [readonly { readonly raw: Uint8Array }[]];
  return events.reduce((sum, { raw }) => sum + raw.byteLength, 0);
}
