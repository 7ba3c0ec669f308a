import type { PaymentEvent } from '../events/payment-event.js';
import { resolveSummaryOption } from './receive/event-summaries.js';
import type { SummaryOption } from './receive/event-summaries.js';
import type { EventSummary } from './store/event-summary.js';
import { isReserved } from '../events/handler-registry.js';
import type { HandlerOptions } from '../events/handler-registry.js';
import { assertRetrySchedule, exponential } from '../events/retry-schedule.js';
import type { RetrySchedule } from '../events/retry-schedule.js';
import {
  integerOption,
  optionsInvalid,
  rejectUnknownNames,
  shown,
} from '../errors/payments-error.js';
import type { IntegerBounds } from '../errors/payments-error.js';

/** Nest injection token of the {@link ResolvedReceiveOptions}. */
export const RECEIVE_OPTIONS = Symbol('PAYMENTS_RECEIVE_OPTIONS');
/** Nest injection token of the maximum age of an event in milliseconds; see {@link resolveMaxAge}. */
export const MAX_AGE_MS = Symbol('PAYMENTS_MAX_AGE_MS');

/** How events are received. Every field has a default. */
export interface ReceiveOptions {
  /**
   * Event types that are handled once per transaction. A second event of the same company, type and
   * `data.transactionId` is a duplicate, even with another id: its webhook request gets a 200 response, no handler
   * runs, the event is noted on the first event (`StoredEvent.repeats`), and it is logged. Exact types, without `*`. An
   * event of another type, or without a transaction id, is a duplicate only if its id is known. The module adds the
   * types of `reconcile.eventTypes`. Default `['transaction.completed']`; `[]` for none.
   */
  oncePerTransaction?: readonly string[];
  /**
   * Milliseconds after the arrival of a webhook request at which the response is 503 if the event is not safe yet. Less
   * than the sender's time limit of 30 s. 100 to 29,000. Default 25,000.
   */
  deadlineMs?: number;
  /**
   * What lists of events show, and searches find, besides the transaction: a reference, an amount and a currency.
   * Called once for each received event. An error leaves the summary out, and affects nothing else. It is stored as
   * plain text next to the event, also with a `bodyCodec`. Default: `externalReference` or `accountReference`, `amount`
   * and `currency` of the event's `data`. `null` stores no summary.
   */
  summary?: ((event: PaymentEvent) => EventSummary | null | undefined) | null;
}

/** {@link ReceiveOptions}, complete. */
export interface ResolvedReceiveOptions {
  readonly oncePerTransaction: ReadonlySet<string>;
  /** The event types that polls can find; see `reconcile.eventTypes`. They are also in {@link oncePerTransaction}. */
  readonly polled: ReadonlySet<string>;
  readonly deadlineMs: number;
  readonly summary: SummaryOption;
}

/**
 * @param polled the event types that polls can find
 * @throws PaymentsError `options_invalid`.
 */
export function resolveReceiveOptions(
  options: ReceiveOptions,
  polled: readonly string[] = [],
): ResolvedReceiveOptions {
  const {
    oncePerTransaction: types = ['transaction.completed'],
  }: { oncePerTransaction?: unknown } = options;
  if (!Array.isArray(types) || !types.every(isExactType)) {
    throw optionsInvalid(
      '"oncePerTransaction" must be a list of exact event types, such as "transaction.completed", without "*"; ' +
        'use [] for none.',
    );
  }
  return Object.freeze({
    oncePerTransaction: new Set([...types, ...polled]),
    polled: new Set(polled),
    deadlineMs: integerOption('deadlineMs', options.deadlineMs, {
      default: 25_000,
      min: 100,
      max: 29_000,
      unit: 'milliseconds',
    }),
    summary: resolveSummaryOption(options.summary),
  });
}

/**
 * The maximum age of an event in milliseconds, `Infinity` for no limit. `option` is `webhook.maxAgeMs`, and `knowMs` is
 * how long a durable inbox remembers the ids of events.
 *
 * @throws PaymentsError `options_invalid` if ids are deleted before events reach the maximum age: a replay between
 *   these two times would run its handlers again.
 */
export function resolveMaxAge(
  option: number | false | undefined,
  knowMs: number,
  durable: boolean,
): number {
  if (option === false) return Infinity;
  if (!durable) return option ?? Infinity;
  const maxAgeMs = option ?? knowMs;
  if (maxAgeMs <= knowMs) return maxAgeMs;
  throw optionsInvalid(
    `"webhook.maxAgeMs" must be at most "worker.knowMs"; it is ${maxAgeMs}, and "worker.knowMs" is ${knowMs}. Ids are ` +
      'deleted after "worker.knowMs", and a replay that is younger than "webhook.maxAgeMs" would run its handlers ' +
      'again. Raise "worker.knowMs", or set "webhook.maxAgeMs" to false for no limit.',
  );
}

/** Whether a value is an event type without `*` that applications may use. */
export function isExactType(type: unknown): type is string {
  return typeof type === 'string' && /^[^*\p{Cc}]{1,255}$/u.test(type) && !isReserved(type);
}

/** Nest injection token of the {@link ResolvedWorkerOptions}. */
export const WORKER_OPTIONS = Symbol('PAYMENTS_WORKER_OPTIONS');

const DAY = 86_400_000;

/** How deliveries run. Every field has a default. */
export interface WorkerOptions {
  /**
   * Whether this process runs due deliveries and deletes old events by itself. `false` for platforms that freeze a
   * process between requests, such as AWS Lambda: call `PaymentInbox.runDue()` and `PaymentInbox.prune()` there. The
   * memory inbox ignores it, because it runs the handlers before the response is sent. Default `true`.
   */
  background?: boolean;
  /**
   * Default of `concurrency` of `@OnPaymentEvent`: how many attempts of one handler run at the same time in this
   * process at most. Each handler has its own limit, so a slow handler delays no other. 1 to 1,000. Default 20.
   */
  concurrency?: number;
  /**
   * Default of `timeoutMs` of `@OnPaymentEvent`: milliseconds until `context.signal` aborts and the attempt fails with
   * the code `handler_timeout`. 1 to 3,600,000. Default 60,000.
   */
  timeoutMs?: number;
  /**
   * Default of `retry` of `@OnPaymentEvent`: when a failed delivery is retried, and after how many attempts it is dead.
   * Default `exponential()`: 16 attempts in about three days.
   */
  retry?: RetrySchedule;
  /**
   * Milliseconds without a heartbeat after which this process counts as dead and other processes run its deliveries.
   * It sends a heartbeat every `leaseMs / 4`. 1,000 to 3,600,000. Default 20,000.
   */
  leaseMs?: number;
  /**
   * How long a closing application waits for handlers that run, in milliseconds. 0 to 600,000. Default 20,000.
   */
  drainMs?: number;
  /**
   * How long an event whose deliveries are all done or skipped is kept with its body, in milliseconds after its
   * receipt. After that, only a tombstone is kept. 1,000 to 31,536,000,000 (a year). Default 604,800,000 (7 days).
   */
  keepMs?: number;
  /**
   * How long the id of an event is known, so that copies of the event are duplicates, in milliseconds: counted from its
   * receipt or, if the event's own time is later, from that time. A copy that arrives after that is too old to be
   * handled; see `webhook.maxAgeMs`. At least `keepMs`, at most 315,360,000,000 (10 years). Default 2,592,000,000 (30
   * days).
   */
  knowMs?: number;
}

/** {@link WorkerOptions}, complete. */
export type ResolvedWorkerOptions = Readonly<Required<WorkerOptions>>;

const MS = 'milliseconds';
const BOUNDS = {
  concurrency: { default: 20, min: 1, max: 1000, unit: 'attempts' },
  timeoutMs: { default: 60_000, min: 1, max: 3_600_000, unit: MS },
  leaseMs: { default: 20_000, min: 1000, max: 3_600_000, unit: MS },
  drainMs: { default: 20_000, min: 0, max: 600_000, unit: MS },
  keepMs: { default: 7 * DAY, min: 1000, max: 365 * DAY, unit: MS },
  knowMs: { default: 30 * DAY, min: 1000, max: 3650 * DAY, unit: MS },
} satisfies Record<Exclude<keyof WorkerOptions, 'background' | 'retry'>, IntegerBounds>;

/** @throws PaymentsError `options_invalid`. */
export function resolveWorkerOptions(options: WorkerOptions = {}): ResolvedWorkerOptions {
  if (typeof options !== 'object' || options === null) {
    throw optionsInvalid(`"worker" must be an object of options; it is ${shown(options)}.`);
  }
  rejectUnknownNames('worker.', options, ['background', 'retry', ...Object.keys(BOUNDS)]);
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
    timeoutMs: option('timeoutMs'),
    retry: resolveRetry(options.retry),
    leaseMs: option('leaseMs'),
    drainMs: option('drainMs'),
    keepMs,
    // An id must be known for as long as its event is kept.
    knowMs: option('knowMs', {
      ...BOUNDS.knowMs,
      min: keepMs,
      default: Math.max(BOUNDS.knowMs.default, keepMs),
    }),
  });
}

function resolveRetry(retry: RetrySchedule = exponential()): RetrySchedule {
  try {
    assertRetrySchedule(retry, '"worker.retry"');
  } catch (error) {
    throw optionsInvalid((error as TypeError).message);
  }
  return retry;
}

/** Limits of one handler. */
export interface HandlerPolicy {
  /** How many attempts run at the same time in this process at most. */
  readonly concurrency: number;
  /** How long one attempt may take, in milliseconds. */
  readonly timeoutMs: number;
  /** When a failed delivery is retried. */
  readonly retry: RetrySchedule;
}

/** The options of the handler's decorator, with the defaults of the option `worker`. */
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
