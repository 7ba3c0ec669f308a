import type { SeededRandom } from '../chaos/seeded-random.ts';

interface Timer {
  readonly at: number;
  /** Orders timers of the same millisecond at random. */
  readonly rank: number;
  readonly callback: () => void;
}

/** Passes time and runs due timers: virtual time in {@link VirtualTimeline}, real time in `RealTimeline`. */
export interface Timeline {
  /** Milliseconds since the start. */
  readonly now: number;
  schedule(ms: number, callback: () => void): () => void;
  /** Lets `ms` milliseconds pass. */
  run(ms: number): Promise<void>;
  /** Lets time pass until the condition holds, at most `limitMs`. Returns whether it holds. */
  until(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean>;
}

/** The number of turns of the event loop without a new timer after which all code is considered to wait for a timer. */
const QUIET_TURNS = 3;

/**
 * Virtual time, which passes without waiting. Every delay is a timer here. The timeline runs one timer at a time, and
 * the next timer when all code waits for a timer. The seed decides the order of timers of the same millisecond.
 */
export class VirtualTimeline implements Timeline {
  #now = 0;
  #scheduled = 0;
  readonly #timers = new Set<Timer>();

  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  get now(): number {
    return this.#now;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), rank: this.#random.next(), callback };
    this.#scheduled += 1;
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  async run(ms: number): Promise<void> {
    await this.until(() => false, ms);
  }

  async until(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    const end = this.#now + limitMs;
    await this.#quiet();
    for (;;) {
      if (await condition()) return true;
      const next = this.#next();
      if (next === undefined || next.at > end) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await this.#quiet();
    }
    this.#now = end;
    return condition();
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (!next || timer.at < next.at || (timer.at === next.at && timer.rank < next.rank))
        next = timer;
    }
    return next;
  }

  async #quiet(): Promise<void> {
    for (let seen = -1, turns = 0; turns < QUIET_TURNS; turns += 1) {
      if (seen !== this.#scheduled) [seen, turns] = [this.#scheduled, 0];
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
