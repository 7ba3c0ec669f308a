import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from './payments-runtime.js';

const MAX_INTERVAL_MS = 2 ** 31 - 1;

/**
 * Settles as `promise` does, unless the signal is aborted first. The promise itself goes on: others may wait for it.
 *
 * @throws PaymentsError `aborted` if the signal is aborted first
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(new PaymentsError('aborted', 'The wait was aborted'));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Resolves after `ms` milliseconds, or as soon as the signal is aborted. Never rejects. */
export function abortableDelay(
  ms: number,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    // The runtime's timers keep no process alive. Without this one, a script that waits for a call would exit
    // between two attempts of it.
    const keepAlive = setInterval(() => {}, MAX_INTERVAL_MS);
    const done = (): void => {
      clearInterval(keepAlive);
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = runtime.schedule(ms, done);
    signal.addEventListener('abort', done, { once: true });
  });
}
