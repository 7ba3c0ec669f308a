import { PaymentsApiError } from '../api/api-error.js';
import { describeError } from '../errors/payments-error.js';
import type { PaymentsApi, PaymentTransaction } from '../api/payments-api.js';
import { isRecord } from '../events/payment-event.js';
import type { ExpectationStore, StoredExpectation } from '../inbox/store/expectation-store.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** The result of asking the service about an expected payment. */
export type AskResult =
  | {
      readonly result: 'event';
      readonly transactionId: string;
      readonly eventType: string;
      readonly data: Readonly<Record<string, unknown>>;
    }
  | {
      readonly result: 'pending' | 'unknown';
      /** One line about the reason; `null` without one. */
      readonly detail: string | null;
      /** The `Retry-After` of the service's answer, in milliseconds. */
      readonly retryAfterMs?: number;
      /** Whether that time holds for all polls of the company, because the service responded with 429. */
      readonly rateLimited?: boolean;
    };

/** The options, services and functions that {@link askService} uses. */
export interface AskContext {
  readonly options: ResolvedReconcileOptions;
  /** The API for the company of the expectation. */
  readonly api: PaymentsApi;
  readonly signal: AbortSignal;
  /** Stores the transaction id that `find` returned. */
  attach(transactionId: string): ReturnType<ExpectationStore['attach']>;
}

const TRANSACTION_ID = /^[^\p{Cc}]{1,255}$/u;

/** Whether a value is a valid transaction id. */
export function isTransactionId(value: unknown): value is string {
  return typeof value === 'string' && TRANSACTION_ID.test(value);
}

/**
 * Reads the transaction of an expected payment from the service, and lets `interpret` decide its meaning. The result of
 * a failed call, of an error of `find` or `interpret`, and of an invalid return value of these two is `unknown`.
 *
 * @throws what {@link AskContext.attach} throws: the store is down.
 */
export async function askService(
  expectation: StoredExpectation,
  context: AskContext,
): Promise<AskResult> {
  let { transactionId } = expectation;
  if (transactionId === null) {
    const found = await findTransaction(expectation.reference, context);
    if (typeof found !== 'string') return found;
    const attached = await context.attach(found);
    if (attached !== 'attached') {
      return unknown(
        'The transaction that "reconcile.find" found was not attached: another expectation has its id, or the expectation ' +
          'was cancelled or got another id meanwhile.',
      );
    }
    transactionId = found;
  }
  let transaction: PaymentTransaction;
  try {
    const { signal } = context;
    transaction = await context.api.getTransaction(transactionId, { signal, obeyRetryAfter: true });
  } catch (error) {
    return failed(error, '');
  }
  try {
    const { company, reference } = expectation;
    const payment = Object.freeze({ company, reference, transactionId });
    const meaning: unknown = await context.options.interpret(transaction, payment);
    return toAskResult(meaning, transactionId, context.options.eventTypes);
  } catch (error) {
    return unknown(`"reconcile.interpret" failed: ${describeError(error)}`);
  }
}

async function findTransaction(
  reference: string,
  context: AskContext,
): Promise<string | AskResult> {
  const { options, api, signal } = context;
  if (options.find === null || options.find === undefined) {
    return unknown('No transaction id is attached, and "reconcile.find" is not set.');
  }
  try {
    const found: unknown = await options.find(reference, api, { signal });
    if (found === null || found === undefined) {
      return unknown('"reconcile.find" found no transaction.');
    }
    if (isTransactionId(found)) return found;
    return unknown(
      `"reconcile.find" must return a transaction id of 1 to 255 characters, or null; it returned ${kindOf(found)}.`,
    );
  } catch (error) {
    return failed(error, '"reconcile.find" failed: ');
  }
}

/** Checks the return value of `interpret`. May throw if the value has getters that throw. */
function toAskResult(
  meaning: unknown,
  transactionId: string,
  eventTypes: readonly string[],
): AskResult {
  if (meaning === 'pending') return { result: 'pending', detail: null };
  if (meaning === 'unknown') return unknown(null);
  if (!isRecord(meaning)) {
    return unknown(
      `"reconcile.interpret" must return "pending", "unknown" or { eventType, data }; it returned ${kindOf(meaning)}.`,
    );
  }
  const { eventType, data = {} } = meaning;
  if (typeof eventType !== 'string' || !eventTypes.includes(eventType)) {
    return unknown(
      `"reconcile.interpret" returned an event type that is not in "reconcile.eventTypes" (${eventTypes.join(', ')}). ` +
        'Add it there.',
    );
  }
  // A copy that JSON can represent, as the inbox will store it.
  const copy: unknown = isRecord(data) ? JSON.parse(JSON.stringify(data)) : data;
  if (!isRecord(copy)) {
    return unknown(
      `"reconcile.interpret" must return an object as "data"; as JSON, it is ${kindOf(copy)}.`,
    );
  }
  const { transactionId: own = transactionId } = copy;
  if (own !== transactionId) {
    return unknown('"reconcile.interpret" returned "data" of another transaction.');
  }
  return { result: 'event', transactionId, eventType, data: { ...copy, transactionId } };
}

function unknown(detail: string | null): AskResult {
  return { result: 'unknown', detail };
}

function failed(error: unknown, what: string): AskResult {
  const result = unknown(what + describeError(error));
  if (!(error instanceof PaymentsApiError) || error.retryAfterMs === undefined) return result;
  const rateLimited = error.code === 'rate_limited';
  return { ...result, retryAfterMs: error.retryAfterMs, rateLimited } as AskResult;
}

/** The kind of a value, for a message that must not contain the value. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}
