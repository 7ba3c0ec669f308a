import type { PaymentsRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';

interface Timer {
  at: number;
  callback: () => void;
}

/**
 * A runtime whose clock only the test advances. Both clocks move together, except in `setWallClock` and
 * `passMonotonic`.
 */
export class FakeRuntime implements PaymentsRuntime {
  /** The return value of `random()`, from 0 (included) to 1 (excluded). */
  chance = 0.5;
  /** The value of `NODE_ENV`. */
  environment?: string;
  readonly #timers = new Set<Timer>();
  #monotonic = 0;
  #wall = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  random(): number {
    return this.chance;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that have neither run nor been stopped. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer, or undefined if there is none. */
  get nextIn(): number | undefined {
    const next = this.#next();
    return next && next.at - this.#monotonic;
  }

  /** Lets time pass on both clocks, and runs each timer at its time. */
  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (let next = this.#next(); next && next.at <= end; next = this.#next()) {
      this.#timers.delete(next);
      this.#pass(Math.max(0, next.at - this.#monotonic));
      next.callback();
    }
    this.#pass(end - this.#monotonic);
  }

  /** Moves only the wall clock, as if it had been set forwards or back. */
  setWallClock(byMs: number): void {
    this.#wall += byMs;
  }

  /** Moves only the monotonic clock, as if the wall clock had been set back by as much. */
  passMonotonic(ms: number): void {
    const wall = this.#wall;
    this.advance(ms);
    this.#wall = wall;
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (!next || timer.at < next.at) next = timer;
    return next;
  }

  #pass(ms: number): void {
    this.#monotonic += ms;
    this.#wall += ms;
  }
}
