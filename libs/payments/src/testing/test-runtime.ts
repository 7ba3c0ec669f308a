import { setImmediate as turn } from 'node:timers/promises';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** Start values of a {@link TestRuntime}. */
export interface TestRuntimeOptions {
  /** Start time of the clock. Default 2026-01-01T00:00:00Z. */
  now?: Date;
  /** Return value of `random()`, from 0 (included) to 1 (excluded). Default 0.5, the middle of every jitter range. */
  random?: number;
}

/**
 * Number of turns of the event loop after each timer in {@link TestRuntime.advance}, so that promise callbacks can run.
 */
const TURNS = 10;

/**
 * A runtime whose time advances only when the test calls {@link advance}. The application's retries, backoff, leases,
 * deadlines and token lifetimes use this time. Set the runtime as the option `runtime` of `PaymentsModule`. A
 * PostgreSQL inbox uses the clock of the database, which a test cannot advance.
 *
 * `paymentEvent()` uses the machine's clock for timestamps. If the runtime's clock is ahead by more than
 * `webhook.maxAgeMs`, the inbox stores the event as stale: pass a `timestamp` to `paymentEvent()`.
 *
 * @example
 * ```ts
 * const runtime = new TestRuntime();
 * PaymentsModule.forRoot({ ...options, runtime });
 *
 * await deliver(app, event); // the handler fails, and its retry is scheduled
 * await runtime.advance(60_000);
 * await settled(app); // the retry has run
 * ```
 */
export class TestRuntime implements PaymentsRuntime {
  readonly #timers = new Set<Timer>();
  readonly #start: number;
  readonly #random: number;
  #elapsed = 0;

  constructor({ now = new Date(Date.UTC(2026, 0, 1)), random = 0.5 }: TestRuntimeOptions = {}) {
    this.#start = now.getTime();
    this.#random = random;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  random(): number {
    return this.#random;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = { at: this.#elapsed + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /**
   * Advances `now()` and `monotonic()` and runs each due timer at its time, in order. After each timer, the event loop
   * turns a few times, so that promise callbacks run and can start further timers.
   *
   * @param ms how far to advance, in milliseconds.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await turns();
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#timers.delete(timer);
      this.#elapsed = Math.max(this.#elapsed, timer.at);
      timer.callback();
      await turns();
    }
    this.#elapsed = end;
  }

  /** Returns the next due timer. If several timers have the same time, returns the one that was scheduled first. */
  #next(end: number): Timer | undefined {
    const due = [...this.#timers].filter(({ at }) => at <= end);
    return due.toSorted((a, b) => a.at - b.at)[0];
  }
}

async function turns(): Promise<void> {
  for (let index = 0; index < TURNS; index += 1) await turn();
}
