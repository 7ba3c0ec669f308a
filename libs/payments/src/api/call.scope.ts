import type { PaymentsRuntime } from '../payments.runtime.js';

/** Why something was ended before it was done. */
export type ScopeEnd = 'aborted' | 'timeout' | 'closed';

/**
 * A stretch of work with a time limit, under a signal from above: a call under its caller's, one try under its
 * call's. Must be released.
 */
export class CallScope {
  readonly #controller = new AbortController();
  readonly #runtime: PaymentsRuntime;
  readonly #endsAt: number;
  readonly #parent: AbortSignal | undefined;
  readonly #stopTimer: () => void;
  readonly #onParentAbort = (): void => this.end('aborted');
  #ended: ScopeEnd | undefined;

  constructor(runtime: PaymentsRuntime, limitMs: number, parent: AbortSignal | undefined) {
    this.#runtime = runtime;
    this.#endsAt = runtime.monotonic() + limitMs;
    this.#parent = parent;
    this.#stopTimer = runtime.schedule(limitMs, () => this.end('timeout'));
    if (parent?.aborted) this.end('aborted');
    else parent?.addEventListener('abort', this.#onParentAbort, { once: true });
  }

  /** Aborted when this ends, whyever. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why it ended, or undefined while it goes on. */
  get ended(): ScopeEnd | undefined {
    return this.#ended;
  }

  /** How much of its time is left, in milliseconds. */
  get remainingMs(): number {
    return this.#endsAt - this.#runtime.monotonic();
  }

  /** Ends it. The first reason stays. */
  end(why: ScopeEnd): void {
    if (this.#ended) return;
    this.#ended = why;
    this.release();
    this.#controller.abort();
  }

  /** Lets go of the timer and of the signal from above. */
  release(): void {
    this.#stopTimer();
    this.#parent?.removeEventListener('abort', this.#onParentAbort);
  }
}
