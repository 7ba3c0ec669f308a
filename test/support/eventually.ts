import { setTimeout } from 'node:timers/promises';

/** Repeats an assertion until it holds; after `deadlineMs` milliseconds, throws what it last threw. */
export async function eventually<T>(assert: () => Promise<T> | T, deadlineMs = 15_000): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    try {
      return await assert();
    } catch (error) {
      if (performance.now() > end) throw error;
      await setTimeout(20);
    }
  }
}
