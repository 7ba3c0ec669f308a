import { PaymentsError } from '../payments.errors.js';

/**
 * Waits for a promise others may wait for too, until `signal` ends this wait. The promise goes on.
 *
 * @throws PaymentsError `aborted`, where the signal came first
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const end = (): void => reject(new PaymentsError('aborted', 'The wait was aborted'));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}
