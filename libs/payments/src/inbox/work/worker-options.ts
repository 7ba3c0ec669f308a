import { checkFields, flag, whole } from '../../errors/option-checks.js';
import type { OptionChecks } from '../../errors/option-checks.js';
import type { HandlerOptions } from '../../events/handler-registry.js';
import { checkRetrySchedule, exponential } from '../../events/retry-schedule.js';
import type { RetrySchedule } from '../../events/retry-schedule.js';

export const WORKER_OPTIONS = Symbol('PAYMENTS_WORKER_OPTIONS');

const DAY = 86_400_000;

/** How deliveries run. Every field has a default. */
export interface WorkerOptions {
  /**
   * Whether this process runs due deliveries and deletes old events by itself. `false` for platforms that freeze a
   * process between requests, such as AWS Lambda: call `PaymentInbox.runDue()` and `PaymentInbox.prune()` there. The
   * memory inbox ignores this option, because it runs the handlers before the response is sent. Default `true`.
   */
  background?: boolean;
  /**
   * Maximum number of attempts of one handler that run at the same time in this process, unless `@OnPaymentEvent` sets
   * the `concurrency` of the handler. Each handler has its own limit, so a slow handler delays no other. 1 to 1,000.
   * Default 20.
   */
  concurrency?: number;
  /**
   * Milliseconds from the start of an attempt until `context.signal` aborts and the attempt fails with the code
   * `handler_timeout`, unless `@OnPaymentEvent` sets the `timeoutMs` of the handler. 1 to 3,600,000. Default 60,000.
   */
  timeoutMs?: number;
  /**
   * When a failed delivery is retried, and after how many attempts it is dead, unless `@OnPaymentEvent` sets the `retry`
   * of the handler. Default `exponential()`.
   */
  retry?: RetrySchedule;
  /**
   * Milliseconds without a heartbeat after which this process counts as dead and other processes run its deliveries.
   * The process sends a heartbeat every `leaseMs / 4`. 1,000 to 3,600,000. Default 20,000.
   */
  leaseMs?: number;
  /** How long a closing application waits for running handlers, in milliseconds. 0 to 600,000. Default 20,000. */
  drainMs?: number;
  /**
   * Milliseconds from the receipt of an event until its body is deleted, if all its deliveries are done or skipped.
   * After its body is deleted, the event is a tombstone, which has the event's id but not its body. 1,000 to
   * 31,536,000,000 (a year). Default 604,800,000 (7 days).
   */
  retainEventsMs?: number;
  /**
   * Milliseconds for which the id of an event is stored, so that copies of the event are recognised as duplicates. The
   * time counts from the receipt of the event or from the event's own time, whichever is later. A copy that arrives
   * after this time is too old to be handled; see `webhook.maxAgeMs`. At least `retainEventsMs`, at most
   * 315,360,000,000 (10 years). Default 2,592,000,000 (30 days).
   */
  retainIdsMs?: number;
}

export type ResolvedWorkerOptions = Readonly<Required<WorkerOptions>>;

const MS = 'milliseconds';
const checkRetainEventsMs = whole({ default: 7 * DAY, min: 1000, max: 365 * DAY, unit: MS });

/** @throws PaymentsError `options_invalid`. */
export function resolveWorkerOptions(options: WorkerOptions = {}): ResolvedWorkerOptions {
  // The id of an event must be stored for at least as long as the event.
  const retainEventsMs = checkRetainEventsMs('worker.retainEventsMs', options?.retainEventsMs);
  return checkFields('worker', options, {
    background: flag(true),
    retry: (name, value) => checkRetrySchedule(name, value) ?? exponential(),
    concurrency: whole({ default: 20, min: 1, max: 1000, unit: 'attempts' }),
    timeoutMs: whole({ default: 60_000, min: 1, max: 3_600_000, unit: MS }),
    leaseMs: whole({ default: 20_000, min: 1000, max: 3_600_000, unit: MS }),
    drainMs: whole({ default: 20_000, min: 0, max: 600_000, unit: MS }),
    retainEventsMs: checkRetainEventsMs,
    retainIdsMs: whole({
      default: Math.max(30 * DAY, retainEventsMs),
      min: retainEventsMs,
      max: 3650 * DAY,
      unit: MS,
    }),
  } satisfies OptionChecks<WorkerOptions>);
}

export type HandlerPolicy = Pick<ResolvedWorkerOptions, 'concurrency' | 'timeoutMs' | 'retry'>;

export function policyOf(
  { options }: { readonly options: HandlerOptions },
  defaults: HandlerPolicy,
): HandlerPolicy {
  return {
    concurrency: options.concurrency ?? defaults.concurrency,
    timeoutMs: options.timeoutMs ?? defaults.timeoutMs,
    retry: options.retry ?? defaults.retry,
  };
}
