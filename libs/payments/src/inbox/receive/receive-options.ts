import { optionsInvalid, shown, whole } from '../../errors/option-checks.js';
import { isReserved } from '../../events/handler-registry.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import type { EventSummary } from '../store/stored-event.js';

export const RECEIVE_OPTIONS = Symbol('PAYMENTS_RECEIVE_OPTIONS');
export const MAX_AGE_MS = Symbol('PAYMENTS_MAX_AGE_MS');

/** How events are received. Every field has a default. */
export interface ReceiveOptions {
  /**
   * Event types that are handled once per transaction. A second event of the same company, type and
   * `data.transactionId` is a duplicate, even if its id differs. The webhook request of the duplicate gets a 200
   * response, and no handler runs. The module logs the duplicate, and adds it to `StoredEvent.repeats` of the first
   * event. The types must be exact, without `*`. An event of another type, or without a transaction id, is a duplicate
   * only if an event with the same id is stored. The module adds the types of `reconcile.eventTypes` to this list.
   * Default `['transaction.completed']`; `[]` for none.
   */
  oncePerTransaction?: readonly string[];
  /**
   * Time limit for a webhook request, in milliseconds from its arrival. If the event is neither stored durably nor
   * handled within this time, the response is 503. The limit must be less than the sender's time limit of 30 s. 100 to
   * 29,000. Default 25,000.
   */
  deadlineMs?: number;
  /**
   * Returns the summary of an event: a reference, an amount and a currency. Lists of events show the summary, and
   * searches find events by the reference. The module calls this function once for each received event. If the function
   * fails, the event has no summary, and nothing else changes. The summary is stored as plain text next to the event,
   * even with a `bodyCodec`. Default: `externalReference` or `accountReference`, `amount` and `currency` of the event's
   * `data`. `null` stores no summary.
   */
  summary?: ((event: PaymentEvent) => EventSummary | null | undefined) | null;
}

export interface ResolvedReceiveOptions {
  readonly oncePerTransaction: ReadonlySet<string>;
  /**
   * The event types that polls can find; see `reconcile.eventTypes`. These types are also in
   * {@link oncePerTransaction}.
   */
  readonly polled: ReadonlySet<string>;
  readonly deadlineMs: number;
  /** The option `summary`; `undefined` for the default. */
  readonly summary: ReceiveOptions['summary'] | undefined;
}

const checkDeadline = whole({ default: 25_000, min: 100, max: 29_000, unit: 'milliseconds' });

/** @throws PaymentsError `options_invalid`. */
export function resolveReceiveOptions(
  options: ReceiveOptions,
  polled: readonly string[] = [],
): ResolvedReceiveOptions {
  const { deadlineMs, summary } = options;
  const {
    oncePerTransaction: types = ['transaction.completed'],
  }: { oncePerTransaction?: unknown } = options;
  if (!Array.isArray(types) || !types.every(isExactType)) {
    throw optionsInvalid(
      '"oncePerTransaction" must be a list of exact event types, such as "transaction.completed", without "*"; ' +
        'use [] for none.',
    );
  }
  if (summary !== undefined && summary !== null && typeof summary !== 'function') {
    throw optionsInvalid(
      `"summary" must be a function of an event, or null to store no summary; it is ${shown(summary)}.`,
    );
  }
  return Object.freeze({
    oncePerTransaction: new Set([...types, ...polled]),
    polled: new Set(polled),
    deadlineMs: checkDeadline('deadlineMs', deadlineMs),
    summary,
  });
}

/**
 * Returns the maximum age of an event, `Infinity` for no limit. `option` is the value of `webhook.maxAgeMs`.
 *
 * @throws PaymentsError `options_invalid` if ids are deleted before events reach the maximum age. Otherwise, a copy of
 *   an event that arrives between these two times would run the handlers again.
 */
export function resolveMaxAge(
  option: number | false | undefined,
  retainIdsMs: number,
  durable: boolean,
): number {
  if (option === false) return Infinity;
  if (!durable) return option ?? Infinity;
  const maxAgeMs = option ?? retainIdsMs;
  if (maxAgeMs <= retainIdsMs) return maxAgeMs;
  throw optionsInvalid(
    `"webhook.maxAgeMs" must be at most "worker.retainIdsMs"; it is ${maxAgeMs}, and "worker.retainIdsMs" is ${retainIdsMs}. Ids are ` +
      'deleted after "worker.retainIdsMs", and a replay that is younger than "webhook.maxAgeMs" would run its handlers ' +
      'again. Raise "worker.retainIdsMs", or set "webhook.maxAgeMs" to false for no limit.',
  );
}

export function isExactType(type: unknown): type is string {
  return typeof type === 'string' && /^[^*\p{Cc}]{1,255}$/u.test(type) && !isReserved(type);
}
