import type { PaymentsRuntime } from '../payments.runtime.js';

const LONGEST_INTERVAL_MS = 2 ** 31 - 1;

/** Waits, until the time is over or the signal aborted: never rejects. */
export function pause(runtime: PaymentsRuntime, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    // The runtime's timers keep no process alive, but somebody waits for this call: without a handle of its
    // own, a script would exit in the middle of it.
    const hold = setInterval(() => {}, LONGEST_INTERVAL_MS);
    const done = (): void => {
      clearInterval(hold);
      stopTimer();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const stopTimer = runtime.schedule(ms, done);
    signal.addEventListener('abort', done, { once: true });
  });
}
