import type { Timeline } from './virtual-timeline.ts';

/** Milliseconds between two checks of a condition. */
const POLL_MS = 20;

/** Real time, for stores that cannot use virtual time. */
export class RealTimeline implements Timeline {
  readonly #start = performance.now();
  readonly #timers = new Set<NodeJS.Timeout>();

  get now(): number {
    return performance.now() - this.#start;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, ms);
    this.#timers.add(timer);
    return () => {
      clearTimeout(timer);
      this.#timers.delete(timer);
    };
  }

  run(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  async until(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    const end = this.now + limitMs;
    while (!(await condition())) {
      if (this.now >= end) return false;
      await this.run(POLL_MS);
    }
    return true;
  }

  /** Stops all timers of all processes. */
  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }
}
