import {
  integerOption,
  optionsInvalid,
  refuseUnknownNames,
  shown,
} from '../payments.validation.js';
import type { IntegerBounds } from '../payments.validation.js';

const DAY = 86_400_000;

/** How deliveries are run. Every field has a default. */
export interface WorkerOptions {
  /**
   * Whether this process runs due deliveries and forgets old events by itself. `false` for platforms that freeze a
   * process between requests, such as AWS Lambda: call `PaymentInbox.runDue()` and `PaymentInbox.prune()` there. The
   * memory inbox ignores it, since it runs the handlers before it answers. Default `true`.
   */
  background?: boolean;
  /** How many handlers run at the same time in this process. 1 to 1,000. Default 20. */
  concurrency?: number;
  /**
   * For how many milliseconds a delivery is leased. The lease is prolonged while its handler runs; a process
   * that dies frees its deliveries when they run out. 1,000 to 3,600,000. Default 60,000.
   */
  leaseMs?: number;
  /** Attempts until a delivery is dead. 1 to 1,000. Default 15. */
  maxAttempts?: number;
  /**
   * Upper bound, in milliseconds, of the wait after the first failure; it doubles with each further one, and
   * the wait is drawn between 0 and the bound (full jitter). 1 to 3,600,000. Default 1,000.
   */
  firstRetryMs?: number;
  /** What the bound of the wait grows to at the most, in milliseconds. 1 to 86,400,000. Default 3,600,000. */
  maxRetryMs?: number;
  /**
   * For how many milliseconds a closing application waits for handlers that run. 0 to 600,000.
   * Default 20,000.
   */
  drainMs?: number;
  /**
   * For how many milliseconds after its receipt an event whose deliveries are all done or skipped is kept whole;
   * then only a tombstone is. 1,000 to 31,536,000,000 (a year). Default 604,800,000 (7 days).
   */
  keepMs?: number;
  /**
   * How many milliseconds an event is remembered, so that its copies are duplicates: counted from its receipt or, if its
   * own time is later, from that. A copy that comes afterwards is too old to be handled; see `webhook.maxAgeMs`. At least
   * `keepMs`, at most 315,360,000,000 (10 years). Default 2,592,000,000 (30 days).
   */
  knowMs?: number;
}

/** {@link WorkerOptions}, complete. */
export type ResolvedWorkerOptions = Readonly<Required<WorkerOptions>>;

const MS = 'milliseconds';
const BOUNDS = {
  concurrency: { default: 20, min: 1, max: 1000, unit: 'handlers' },
  leaseMs: { default: 60_000, min: 1000, max: 3_600_000, unit: MS },
  maxAttempts: { default: 15, min: 1, max: 1000, unit: 'attempts' },
  firstRetryMs: { default: 1000, min: 1, max: 3_600_000, unit: MS },
  maxRetryMs: { default: 3_600_000, min: 1, max: 86_400_000, unit: MS },
  drainMs: { default: 20_000, min: 0, max: 600_000, unit: MS },
  keepMs: { default: 7 * DAY, min: 1000, max: 365 * DAY, unit: MS },
  knowMs: { default: 30 * DAY, min: 1000, max: 3650 * DAY, unit: MS },
} satisfies Record<Exclude<keyof WorkerOptions, 'background'>, IntegerBounds>;

/** @throws PaymentsError `options_invalid`. */
export function resolveWorkerOptions(options: WorkerOptions = {}): ResolvedWorkerOptions {
  if (typeof options !== 'object' || options === null) {
    throw optionsInvalid(`"worker" must be an object of options; it is ${shown(options)}.`);
  }
  refuseUnknownNames('worker.', options, ['background', ...Object.keys(BOUNDS)]);
  const option = (name: keyof typeof BOUNDS, bounds: IntegerBounds = BOUNDS[name]) =>
    integerOption(`worker.${name}`, options[name], bounds);
  const { background = true } = options;
  if (typeof background !== 'boolean') {
    throw optionsInvalid(`"worker.background" must be true or false; it is ${shown(background)}.`);
  }
  const keepMs = option('keepMs');
  return Object.freeze({
    background,
    concurrency: option('concurrency'),
    leaseMs: option('leaseMs'),
    maxAttempts: option('maxAttempts'),
    firstRetryMs: option('firstRetryMs'),
    maxRetryMs: option('maxRetryMs'),
    drainMs: option('drainMs'),
    keepMs,
    // What is forgotten cannot be kept.
    knowMs: option('knowMs', {
      ...BOUNDS.knowMs,
      min: keepMs,
      default: Math.max(BOUNDS.knowMs.default, keepMs),
    }),
  });
}

/**
 * The wait before the attempt after `attempt`, in whole milliseconds: exponential, with full jitter.
 * `random` is a number from 0 to 1.
 */
export function backoffMs(
  attempt: number,
  policy: Pick<ResolvedWorkerOptions, 'firstRetryMs' | 'maxRetryMs'>,
  random: number,
): number {
  const bound = Math.min(policy.maxRetryMs, policy.firstRetryMs * 2 ** (attempt - 1));
  return Math.round(bound * random);
}
