import type { CallOptions, PaymentTransaction } from '../api/payments-api.js';
import type { PaymentsApi } from '../api/payments-api.service.js';
import { checkFields, mustBe, optional, optionsInvalid, whole } from '../errors/option-checks.js';
import type { OptionChecks } from '../errors/option-checks.js';
import { TEST_EVENT_TYPE } from '../events/payment-event.js';
import { isExactType } from '../inbox/receive/receive-options.js';
import { DEFAULT_POLL_SCHEDULE, isPollSchedule, POLL_SCHEDULE } from './poll-schedule.js';

/** Nest injection token of the {@link ResolvedReconcileOptions}; `null` without the option `reconcile`. */
export const RECONCILE_OPTIONS = Symbol('PAYMENTS_RECONCILE_OPTIONS');

/**
 * The meaning of a transaction that the service returned.
 *
 * - `pending`: the transaction is not complete. The payment is polled again.
 * - `unknown`: the application cannot interpret the transaction. The payment is polled again.
 * - an object: the transaction has reached the state that a webhook request with the event type `eventType` would
 *   report. `data` is the payload of the event: an object that JSON can represent. The module adds `transactionId` if
 *   it is missing. Default: only `transactionId`.
 */
export type Interpretation =
  'pending' | 'unknown' | { readonly eventType: string; readonly data?: object };

/** Returns the meaning of the body of `GET /v1/transactions/{id}`; see {@link ReconcileOptions.interpret}. */
export interface InterpretTransaction {
  (
    transaction: PaymentTransaction,
    /** The expected payment that the transaction belongs to. */
    payment: {
      readonly company: string;
      readonly reference: string;
      readonly transactionId: string;
    },
  ): Interpretation | Promise<Interpretation>;
  /** The event types that the function can return. Default of {@link ReconcileOptions.eventTypes}. */
  readonly eventTypes?: readonly string[];
}

/** Options of the polls of expected payments whose webhook request does not arrive. */
export interface ReconcileOptions {
  /**
   * Returns the meaning of a transaction, or a promise of it. The service does not document the body of
   * `GET /v1/transactions/{id}`, so the application decides; {@link byStatus} reads `status`. The result is `unknown`
   * if `interpret` throws, rejects, returns an invalid value, or returns the `data` of another transaction.
   */
  interpret: InterpretTransaction;
  /**
   * Returns the id of the transaction with the application's reference, for an expectation without a transaction id.
   * Return `null` or `undefined` only if the service certainly has no such transaction yet, because `request()` then
   * sends a request again. The function should throw if the response of the service is not what you expect. `api` calls
   * the service for the company of the expectation. Pass `options` to each call, because it contains a signal. Default:
   * none; an expectation without a transaction id is polled only after an id is attached.
   */
  find?: (
    reference: string,
    api: PaymentsApi,
    options: Required<Pick<CallOptions, 'signal'>>,
  ) => Promise<string | null | undefined>;
  /**
   * Delays of the polls after the creation of an expectation, in milliseconds: 1 to 100 ascending whole numbers from 0
   * to 31,536,000,000 (a year). Each delay is multiplied by a random factor from 0.9 to 1.1. Default 15 s, 1 min, 5
   * min, 15 min, 1 h, 6 h and 24 h.
   */
  schedule?: readonly number[];
  /**
   * The event types that `interpret` can return: 1 to 100 exact types, without `*`. Events of these types fulfil
   * expectations, and are handled once per transaction (see `oncePerTransaction`), even if both a webhook request and a
   * poll report the transaction. Events of other types do not fulfil expectations. Default: `interpret.eventTypes`,
   * which {@link byStatus} sets; without it, `['transaction.completed']`.
   */
  eventTypes?: readonly string[];
  /**
   * Maximum number of polls of one company that start per second in this process. Further polls are postponed. 1 to
   * 1,000. Default 5.
   */
  maxPollsPerSecond?: number;
  /**
   * Maximum number of polls of one company that run at the same time in this process, so that a company whose service
   * does not respond does not delay other companies. 1 to 100. Default 5. The limit for all companies together is 500.
   */
  concurrency?: number;
}

export type ResolvedReconcileOptions = Readonly<
  Required<Omit<ReconcileOptions, 'find'>> & { find: ReconcileOptions['find'] | null }
>;

const MAX_TYPES = 100;
const isFunction = (value: unknown): boolean => typeof value === 'function';
const POLLS = { default: 5, min: 1, unit: 'polls' };

/** @throws PaymentsError `options_invalid`. */
export function resolveReconcileOptions(
  options: ReconcileOptions | undefined,
): ResolvedReconcileOptions | null {
  if (options === undefined) return null;
  const { interpret, find, eventTypes, ...others } = checkFields('reconcile', options, {
    interpret: optional<InterpretTransaction>(INTERPRET, isFunction),
    find: optional<ReconcileOptions['find']>(
      'a function that returns the id of a transaction',
      isFunction,
    ),
    schedule: (name, value = DEFAULT_POLL_SCHEDULE) => {
      if (isPollSchedule(value)) return Object.freeze([...value]);
      throw mustBe(name, POLL_SCHEDULE, value);
    },
    eventTypes: (_, value) => value as ReconcileOptions['eventTypes'],
    maxPollsPerSecond: whole({ ...POLLS, max: 1000 }),
    concurrency: whole({ ...POLLS, max: 100 }),
  } satisfies OptionChecks<ReconcileOptions>);
  if (interpret === undefined) throw mustBe('reconcile.interpret', INTERPRET, interpret);
  const types = eventTypes ?? interpret.eventTypes ?? ['transaction.completed'];
  if (!areEventTypes(types)) {
    throw optionsInvalid(
      `"reconcile.eventTypes" must be a list of 1 to ${MAX_TYPES} exact event types that "interpret" can return, such ` +
        'as "transaction.completed", without "*".',
    );
  }
  return Object.freeze({
    ...others,
    interpret,
    find: find ?? null,
    eventTypes: Object.freeze([...new Set(types)]),
  });
}

const INTERPRET = 'a function that returns the meaning of a transaction, such as byStatus({ … })';
function areEventTypes(types: unknown): types is readonly string[] {
  return (
    Array.isArray(types) &&
    types.length >= 1 &&
    types.length <= MAX_TYPES &&
    types.every((type: unknown) => isExactType(type) && type !== TEST_EVENT_TYPE)
  );
}

/**
 * Creates an `interpret` that reads the `status` of a transaction. For a listed status, the function returns an event
 * of the type listed for this status. The `data` of the event is the whole transaction. Any other status is `pending`;
 * a transaction without a status is `unknown`.
 *
 * @param eventTypes the event type of each final status
 * @throws TypeError if an event type is invalid, or if there is no event type.
 * @example
 * ```ts
 * reconcile: {
 *   interpret: byStatus({ complete: 'transaction.completed', declined: 'transaction.declined' }),
 * }
 * ```
 */
export function byStatus(eventTypes: Readonly<Record<string, string>>): InterpretTransaction {
  const byName = new Map(Object.entries(eventTypes ?? {}));
  const types = [...new Set(byName.values())];
  if (!areEventTypes(types)) {
    throw new TypeError(
      'byStatus() needs an exact event type for each status, such as { complete: "transaction.completed" }.',
    );
  }
  const interpret = (transaction: PaymentTransaction): Interpretation => {
    const { status } = transaction;
    if (typeof status !== 'string') return 'unknown';
    const eventType = byName.get(status);
    return eventType === undefined ? 'pending' : { eventType, data: transaction };
  };
  return Object.assign(interpret, { eventTypes: types });
}
