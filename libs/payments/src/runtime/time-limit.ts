import type { PaymentsRuntime } from './payments-runtime.js';

/**
 * Settles as `work` does or, if that takes longer than `ms` milliseconds, rejects with what `late` returns. The
 * work itself goes on, and its result is ignored. For work that takes an `AbortSignal`, see `Deadline`.
 */
export function withTimeLimit<T>(
  work: Promise<T>,
  ms: number,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  late: () => Error,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = runtime.schedule(Math.max(0, ms), () => reject(late()));
    work.then(
      (result) => {
        cancel();
        resolve(result);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
