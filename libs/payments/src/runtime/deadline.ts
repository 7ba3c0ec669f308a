import type { PaymentsRuntime } from './payments-runtime.js';

/** Why a {@link Deadline} ended: a signal aborted it, its time was over, or the application closed. */
export type DeadlineEnd = 'aborted' | 'timeout' | 'closed';

/**
 * Limits the time of a piece of work that takes an `AbortSignal`, and ends it if a parent signal is aborted. Deadlines
 * can be nested: that of an attempt has the signal of its call as its parent. Release it when the work is done.
 *
 * For work that takes no signal, see `withTimeLimit`.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #runtime: PaymentsRuntime;
  readonly #endsAt: number;
  readonly #parent: AbortSignal | undefined;
  readonly #cancelTimer: () => void;
  readonly #onParentAbort = (): void => this.end('aborted');
  #ended: DeadlineEnd | undefined;

  /** @param limitMs milliseconds from now */
  constructor(runtime: PaymentsRuntime, limitMs: number, parent?: AbortSignal) {
    this.#runtime = runtime;
    this.#endsAt = runtime.monotonic() + limitMs;
    this.#parent = parent;
    this.#cancelTimer = runtime.schedule(limitMs, () => this.end('timeout'));
    if (parent?.aborted) this.end('aborted');
    else parent?.addEventListener('abort', this.#onParentAbort, { once: true });
  }

  /** Aborted when the deadline ends, for any reason. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why it ended; `undefined` if it has not. */
  get ended(): DeadlineEnd | undefined {
    return this.#ended;
  }

  /** Milliseconds until the time is over. */
  get remainingMs(): number {
    return this.#endsAt - this.#runtime.monotonic();
  }

  /** Ends the work before its time is over. Only the first reason is kept. */
  end(reason: DeadlineEnd): void {
    if (this.#ended) return;
    this.#ended = reason;
    this.release();
    this.#controller.abort();
  }

  /** Cancels the timer and stops listening to the parent signal. The work can go on, without a limit. */
  release(): void {
    this.#cancelTimer();
    this.#parent?.removeEventListener('abort', this.#onParentAbort);
  }
}
