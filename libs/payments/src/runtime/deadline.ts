import { Backoff, STORE_BACKOFF } from './backoff.js';
import { MAX_TIMER_MS } from './payments-runtime.js';
import type { PaymentsRuntime } from './payments-runtime.js';

/** Why a {@link Deadline} ended: the work was aborted, the time was over, or the application is closing. */
export type DeadlineEnd = 'aborted' | 'timeout' | 'closed';

/**
 * Limits the time of work that takes an `AbortSignal`. The deadline also ends if a parent signal is aborted, so that
 * deadlines can be nested. For example, the deadline of an attempt has the signal of its call as its parent. Call
 * `release()` when the work is done.
 *
 * For work that takes no signal, see {@link withTimeLimit}.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #runtime: PaymentsRuntime;
  readonly #endsAt: number;
  readonly #parent: AbortSignal | undefined;
  readonly #cancelTimer: () => void;
  readonly #onParentAbort = (): void => this.end('aborted');
  #ended: DeadlineEnd | undefined;

  constructor(runtime: PaymentsRuntime, limitMs: number, parent?: AbortSignal) {
    this.#runtime = runtime;
    this.#endsAt = runtime.monotonic() + limitMs;
    this.#parent = parent;
    this.#cancelTimer = runtime.schedule(limitMs, () => this.end('timeout'));
    if (parent?.aborted) this.end('aborted');
    else parent?.addEventListener('abort', this.#onParentAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ended(): DeadlineEnd | undefined {
    return this.#ended;
  }

  /** Milliseconds until the time limit; negative after the time limit. */
  get remainingMs(): number {
    return this.#endsAt - this.#runtime.monotonic();
  }

  /** Ends the deadline and aborts its signal. Later calls do nothing, so `ended` is the first reason. */
  end(reason: DeadlineEnd): void {
    if (this.#ended) return;
    this.#ended = reason;
    this.release();
    this.#controller.abort();
  }

  /** Cancels the timer and stops listening to the parent signal. The signal is not aborted. */
  release(): void {
    this.#cancelTimer();
    this.#parent?.removeEventListener('abort', this.#onParentAbort);
  }
}

/**
 * Resolves or rejects as `work` does. If `work` takes longer than `ms` milliseconds, rejects with the error that `late`
 * creates, by default one that names the limit; the work continues, and its result is ignored. For work that takes an
 * `AbortSignal`, see {@link Deadline}.
 */
export function withTimeLimit<T>(
  work: Promise<T>,
  ms: number,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  late = (): Error => new Error(`There was no result within ${ms} ms.`),
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = runtime.schedule(Math.max(0, ms), () => reject(late()));
    work.then(
      (result) => {
        cancel();
        resolve(result);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}

/**
 * Resolves or rejects as `promise` does. If the signal is aborted first, rejects with the error that `aborted` creates; the
 * work behind the promise continues, because other callers may wait for it.
 */
export function abortable<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  aborted: () => Error,
): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(aborted());
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Resolves after `ms` milliseconds, or as soon as the signal, if there is one, is aborted. Never rejects. */
export function abortableDelay(
  ms: number,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    // The timers of the runtime keep no process alive. Without this interval, a script that waits for a call would exit
    // between two attempts.
    const keepAlive = setInterval(() => {}, MAX_TIMER_MS);
    const done = (): void => {
      clearInterval(keepAlive);
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = runtime.schedule(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/**
 * Repeats an operation of the store until it succeeds. Rejects with the last error if the signal is aborted, or if the
 * next attempt would begin after `endsAt` (on the monotonic clock).
 */
export async function retryUntil<T>(
  endsAt: number,
  work: () => Promise<T>,
  runtime: PaymentsRuntime,
  signal?: AbortSignal,
): Promise<T> {
  const backoff = new Backoff(runtime, STORE_BACKOFF);
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const waitMs = backoff.nextMs();
      if (signal?.aborted || runtime.monotonic() + waitMs > endsAt) throw error;
      await abortableDelay(waitMs, runtime, signal);
    }
  }
}
