import { describeError } from '../errors/payments-error.js';
import type { PaymentsApi, PaymentTransaction } from '../api/payments-api.js';
import type { StoredExpectation } from '../inbox/store/expectation-store.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** What the service says about an expected payment. */
export type Finding =
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
    };

/** What {@link askService} uses. */
export interface Asking {
  readonly options: ResolvedReconcileOptions;
  /** The API for the company of the expectation. */
  readonly api: PaymentsApi;
  readonly signal: AbortSignal;
  /** Stores the transaction id that `find` returned. */
  attach(transactionId: string): Promise<'attached' | 'conflict' | 'unknown'>;
}

const TRANSACTION_ID = /^[^\p{Cc}]{1,255}$/u;

/** Whether a value is a valid transaction id. */
export function isTransactionId(value: unknown): value is string {
  return typeof value === 'string' && TRANSACTION_ID.test(value);
}

/**
 * Asks the service about an expected payment, and the application about the meaning of the response. A failed call, an
 * error of `find` or `interpret`, and a return value that they must not return are `unknown`.
 *
 * @throws what {@link Asking.attach} throws: the store is down.
 */
export async function askService(expectation: StoredExpectation, asking: Asking): Promise<Finding> {
  let { transactionId } = expectation;
  if (transactionId === null) {
    const found = await findTransaction(expectation.reference, asking);
    if (typeof found !== 'string') return found;
    const attached = await asking.attach(found);
    if (attached !== 'attached') {
      return unknown('Another transaction id was attached while "reconcile.find" ran.');
    }
    transactionId = found;
  }
  let transaction: PaymentTransaction;
  try {
    transaction = await asking.api.getTransaction(transactionId, { signal: asking.signal });
  } catch (error) {
    return unknown(describeError(error));
  }
  try {
    const { company, reference } = expectation;
    const payment = Object.freeze({ company, reference, transactionId });
    const meaning: unknown = await asking.options.interpret(transaction, payment);
    return toFinding(meaning, transactionId, asking.options.eventTypes);
  } catch (error) {
    return unknown(`"reconcile.interpret" failed: ${describeError(error)}`);
  }
}

async function findTransaction(reference: string, asking: Asking): Promise<string | Finding> {
  const { options, api, signal } = asking;
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
    return unknown(`"reconcile.find" failed: ${describeError(error)}`);
  }
}

/** Checks the return value of `interpret`. May throw if the value has getters that throw. */
function toFinding(
  meaning: unknown,
  transactionId: string,
  eventTypes: readonly string[],
): Finding {
  if (meaning === 'pending') return { result: 'pending', detail: null };
  if (meaning === 'unknown') return unknown(null);
  if (!isObject(meaning)) {
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
  const copy: unknown = isObject(data) ? JSON.parse(JSON.stringify(data)) : data;
  if (!isObject(copy)) {
    return unknown(
      `"reconcile.interpret" must return an object as "data"; it returned ${kindOf(data)}.`,
    );
  }
  const { transactionId: own = transactionId } = copy;
  if (own !== transactionId) {
    return unknown('"reconcile.interpret" returned "data" of another transaction.');
  }
  return { result: 'event', transactionId, eventType, data: { ...copy, transactionId } };
}

function unknown(detail: string | null): Finding {
  return { result: 'unknown', detail };
}

/** The kind of a value, for a message that must not contain the value. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
