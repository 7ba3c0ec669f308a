import type { HandlerOptions } from '../events/handler-registry.js';
import type { RetrySchedule } from '../events/retry-schedule.js';
import type { ResolvedWorkerOptions } from './worker-options.js';

/** How one handler runs. */
export interface HandlerPolicy {
  /** How many runs of it are under way at the same time in this process, at most. */
  readonly concurrency: number;
  /** How long one attempt may take, in milliseconds. */
  readonly timeoutMs: number;
  /** When a failed delivery to it runs again. */
  readonly retry: RetrySchedule;
}

/** What the handler's decorator sets, and for the rest the defaults of the option `worker`. */
export function policyOf(
  { options }: { readonly options: HandlerOptions },
  defaults: Pick<ResolvedWorkerOptions, 'concurrency' | 'timeoutMs' | 'retry'>,
): HandlerPolicy {
  return {
    concurrency: options.concurrency ?? defaults.concurrency,
    timeoutMs: options.timeoutMs ?? defaults.timeoutMs,
    retry: options.retry ?? defaults.retry,
  };
}
