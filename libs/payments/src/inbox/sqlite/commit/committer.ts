import type { CommitResult, Lease } from '../../store/inbox-store.js';
import { commitOnce } from '../sql/commit.js';
import { unavailable } from '../sqlite-failure.js';
import type { Times } from '../store-clock.js';
import type { SqliteClient } from '../thread/client.js';
import type { SqliteConnection } from '../thread/connection.js';
import type { SqliteTransaction } from './transaction.js';

/** How long the event loop runs commits in one turn, in milliseconds. */
const TURN_MS = 10;

/** A commit that waits. `attempt` returns whether it has ended; it has not if another connection has the lock. */
interface Waiting {
  readonly attempt: () => boolean;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/**
 * Commits on the event loop. Each requests a window from the thread, so that the two never wait for each other's
 * lock. The thread makes the commits durable, together with its own.
 */
export class SqliteCommitter {
  #waiting: Waiting[] = [];
  #underWay = 0;
  #turning = false;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly client: SqliteClient,
    private readonly connect: () => SqliteConnection,
    private readonly busyTimeoutMs: number,
    private readonly times: () => Times,
  ) {}

  /** Resolves once effects and settlement are on the disk. */
  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    this.#underWay += 1;
    try {
      const result = await this.#committed(lease, work);
      await this.#makeDurable();
      return result;
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#onIdle?.();
    }
  }

  /** Resolves when no commit is under way. */
  idle(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #committed<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    return new Promise<CommitResult<R>>((resolve, reject) => {
      const attempt = () => {
        const outcome = commitOnce(this.connect(), lease, work, this.times());
        if (outcome !== 'busy') resolve(outcome);
        return outcome !== 'busy';
      };
      // Real time, because it waits for a lock.
      this.#waiting.push({ attempt, reject, deadline: performance.now() + this.busyTimeoutMs });
      void this.#takeTurns();
    });
  }

  async #makeDurable(): Promise<void> {
    const { deaths } = this.client;
    try {
      try {
        await this.client.call('sync', null);
      } catch (error) {
        // Not after an error of the disk: an fsync after a failed one guarantees nothing.
        if (this.client.deaths === deaths) throw error;
        await this.client.call('sync', null);
      }
    } catch (error) {
      throw unavailable(
        'committed the effects together with the delivery, but a power cut might still undo both: ' +
          (error as Error).message,
      );
    }
  }

  async #takeTurns(): Promise<void> {
    if (this.#turning) return;
    this.#turning = true;
    while (this.#waiting.length > 0) {
      try {
        await this.client.openWindow();
      } catch (error) {
        for (const { reject } of this.#waiting.splice(0)) reject(error);
        break;
      }
      const locked = this.#turn();
      this.client.closeWindow();
      if (locked) await pauseMs(1 + Math.random() * 4);
    }
    this.#turning = false;
  }

  /** Runs what waits, in order; returns whether another process had the lock. */
  #turn(): boolean {
    const end = performance.now() + TURN_MS;
    while (this.#waiting.length > 0 && performance.now() < end) {
      const { attempt, reject, deadline } = this.#waiting[0]!;
      try {
        if (!attempt()) {
          if (performance.now() < deadline) return true;
          throw unavailable(
            `could not commit: another connection held the file locked for ${this.busyTimeoutMs} ms. ` +
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

function pauseMs(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
