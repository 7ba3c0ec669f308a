import type { PaymentsRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';

interface Timer {
  at: number;
  callback: () => void;
}

/**
 * A runtime whose time a test holds in its hand: nothing passes until `advance` says so. Both clocks move
 * together, unless `setWallClock` or `passMonotonic` parts them.
 */
export class FakeRuntime implements PaymentsRuntime {
  /** What `random()` answers, from 0 (included) to 1 (excluded). */
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

  /** Milliseconds until the next timer, or undefined where there is none. */
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

  /** Moves the wall clock alone: somebody set it, forwards or back. */
  setWallClock(byMs: number): void {
    this.#wall += byMs;
  }

  /** Moves the monotonic clock alone, as where the wall clock was set back by as much meanwhile. */
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
