import { TEST_EVENT_TYPE } from '../events/payment-event.js';
import { integerOption, optionsInvalid } from '../errors/options-invalid.js';
import type { IncomingEvent } from './inbox-store.js';

/** Nest injection token of the {@link ResolvedReceiveOptions}. */
export const RECEIVE_OPTIONS = Symbol('PAYMENTS_RECEIVE_OPTIONS');
/** Nest injection token of the maximum age of an event in milliseconds; see {@link resolveMaxAge}. */
export const MAX_AGE_MS = Symbol('PAYMENTS_MAX_AGE_MS');

/** How deliveries are received. Every field has a default. */
export interface ReceiveOptions {
  /**
   * Event types that are handled once per transaction: a second event of the same company, type and
   * `data.transactionId` is a duplicate, even if its id is another. It is answered 200 and not handled, noted on the
   * first event (`StoredEvent.repeats`) and logged. Exact types, without `*`. An event of another type, or without a
   * transaction id, is a duplicate only if its id is known. Default `['transaction.completed']`; `[]` for none.
   */
  oncePerTransaction?: readonly string[];
  /**
   * Milliseconds from a delivery's arrival until it is answered 503 at the latest. Under the sender's 30 s.
   * 100 to 29,000. Default 25,000.
   */
  deadlineMs?: number;
}

/** {@link ReceiveOptions}, complete. */
export interface ResolvedReceiveOptions {
  readonly oncePerTransaction: ReadonlySet<string>;
  readonly deadlineMs: number;
}

/** @throws PaymentsError `options_invalid`. */
export function resolveReceiveOptions(options: ReceiveOptions): ResolvedReceiveOptions {
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
    oncePerTransaction: new Set(types),
    deadlineMs: integerOption('deadlineMs', options.deadlineMs, {
      default: 25_000,
      min: 100,
      max: 29_000,
      unit: 'milliseconds',
    }),
  });
}

/**
 * The maximum age of an event in milliseconds, `Infinity` for no limit. `option` is `webhook.maxAgeMs`, and `knowMs` is
 * how long a durable inbox remembers the ids of events.
 *
 * @throws PaymentsError `options_invalid` if ids are forgotten before the limit is reached: a replay in between would
 *   run its handlers again.
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
      'forgotten after "worker.knowMs", and a replay that is younger than "webhook.maxAgeMs" would run its handlers ' +
      'again. Raise "worker.knowMs", or set "webhook.maxAgeMs" to false for no limit.',
  );
}

/**
 * Whether an event is too old for its id to be remembered, if it was received before. `webhook.test` events never
 * are: no handler runs for them.
 */
export function isStale(
  { eventType, occurredAt }: Pick<IncomingEvent, 'eventType' | 'occurredAt'>,
  nowMs: number,
  maxAgeMs: number,
): boolean {
  return nowMs - occurredAt.getTime() > maxAgeMs && eventType !== TEST_EVENT_TYPE;
}

function isExactType(type: unknown): type is string {
  return typeof type === 'string' && /^[^*\p{Cc}]{1,255}$/u.test(type);
}
