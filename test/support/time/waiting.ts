import { setTimeout } from 'node:timers/promises';
import type { FakeRuntime } from './fake-runtime.js';

/** Repeats an assertion until it holds. After `deadlineMs` milliseconds, it throws the last error of the assertion. */
export async function eventually<T>(assert: () => Promise<T> | T, deadlineMs = 60_000): Promise<T> {
  const start = performance.now();
  for (;;) {
    try {
      return await assert();
    } catch (error) {
      const waited = performance.now() - start;
      if (waited > deadlineMs) throw error;
      // An assertion that holds only after seconds is repeated less often.
      await setTimeout(Math.min(20 + waited / 20, 200));
    }
  }
}

/** Waits, turn by turn of the event loop, until `condition` holds, for example for a real socket. */
export async function until(condition: () => boolean, what = 'the condition'): Promise<void> {
  const end = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`${what} did not happen`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The number of timers once it has not changed for 20 turns of the event loop. */
export async function timersAtRest(runtime: FakeRuntime): Promise<number> {
  let count = runtime.pending;
  for (let same = 0; same < 20; same += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (runtime.pending !== count) same = 0;
    count = runtime.pending;
  }
  return count;
}

/** Turns the event loop so many times, for example until a client has read the output of a server of this process. */
export async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
}
