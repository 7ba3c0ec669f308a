import { PaymentsError } from '../errors/payments-error.js';

/**
 * The `data` of each known event type. An application adds further types by augmenting the interface:
 *
 * @example
 * ```ts
 * declare module 'nestjs-payments' {
 *   interface PaymentEventMap {
 *     'payout.settled': { transactionId: string; amount: number };
 *   }
 * }
 * ```
 */
export interface PaymentEventMap {
  'transaction.completed': TransactionCompletedData;
  'webhook.test': Record<string, unknown>;
}

/**
 * `data` of a `transaction.completed` event, as the service documents it. The module checks the `data` of a signed body
 * only if `@OnPaymentEvent` has the option `data` or `schema`.
 */
export type TransactionCompletedData = {
  /** Id of the transaction (UUID). */
  transactionId: string;
  /** Status of the transaction; `complete` is the only value that the service documents. */
  status: string;
  /** Amount of the transaction. The service does not document the unit. */
  amount: number;
  /** Account reference of the transaction. */
  accountReference: string;
  /** Reference that the application gave the transaction. */
  externalReference: string;
};

/** Type of the event that the service sends to test a webhook. This event needs no handler. */
export const TEST_EVENT_TYPE = 'webhook.test';

/** A known event type, or any other string. */
export type PaymentEventType = keyof PaymentEventMap | (string & {});

/** The `data` of events of type `T`: its type in {@link PaymentEventMap}, otherwise an object with unknown fields. */
export type PaymentEventData<T extends string> = T extends keyof PaymentEventMap
  ? PaymentEventMap[T]
  : Record<string, unknown>;

/**
 * How an event was received.
 *
 * - `webhook`: the service sent the event in a webhook request.
 * - `poll`: the module asked the service about an expected payment; see `PaymentExpectations`.
 * - `overdue`: the module stored the event because an expectation became overdue.
 */
export type PaymentEventSource = 'webhook' | 'poll' | 'overdue';

/** `data` of the event that an `@OnPaymentOverdue` handler gets. */
export type PaymentOverdueData = {
  /** The application's reference of the payment. */
  reference: string;
  /** The service's id of the transaction; `null` if it is not known. */
  transactionId: string | null;
  /** When the expectation was due, ISO 8601; `null` if it became overdue after the last poll of its schedule. */
  dueBy: string | null;
  /** When the expectation was stored, ISO 8601. */
  createdAt: string;
  /** Number of polls of the payment that have ended. */
  polls: number;
  /**
   * `pending`: the customer has not paid. `unknown`: the last poll gave no usable result, so it is unknown whether the
   * customer has paid.
   */
  lastResult: 'pending' | 'unknown';
};

/** The event that an `@OnPaymentOverdue` handler gets. */
export type PaymentOverdueEvent = PaymentEvent<'@payments/overdue', PaymentOverdueData>;

/** An event as the service sends it, verified and parsed. */
export interface PaymentEvent<T extends PaymentEventType = string, D = PaymentEventData<T>> {
  /** Unique event id, 1 to 255 characters. The service sends UUIDs. */
  readonly id: string;
  /** Type of the event, 1 to 255 characters, such as `transaction.completed`. */
  readonly eventType: T;
  /** Time of the event, ISO 8601. */
  readonly timestamp: string;
  /** The payload. */
  readonly data: D;
  /** Further data about the event; an empty object if the body has no `metadata`. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Data about one attempt of a handler. The handler gets this object as its second argument, after the event. Pass the
 * object itself to other functions: a copy (`{ ...context }`) lacks `raw` and `signal`, which are getters. `Tx` is the
 * transaction type of the inbox in use, such as `PostgresTransaction`; `C` is the type of `commit`, which by default
 * follows from `Tx`.
 */
export interface PaymentEventContext<Tx = unknown, C = Commit<Tx>> {
  /** Id of the event's company: the company whose secret signed the webhook request, or whose payment was polled. */
  readonly company: string;
  /** Name of the handler that runs. */
  readonly handler: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** When the application received the event for the first time. */
  readonly receivedAt: Date;
  /**
   * How the application received the event: `webhook`, `poll` if the module found it by a call to the service (see
   * `PaymentExpectations`), or `overdue` for the event of `@OnPaymentOverdue`.
   */
  readonly source: PaymentEventSource;
  /**
   * The request body, byte for byte as it was signed. If `source` is not `webhook`, the body that the module created.
   * The buffer is a copy, so changing it has no effect.
   */
  readonly raw: Buffer;
  /**
   * Returns whether a later event of the same transaction is already done for this handler: an event with the same
   * `data.transactionId` and a later timestamp. The service sends events in any order, so this event may be out of
   * date. Each call reads the inbox; a later event whose body the inbox has already deleted counts as done. Call the
   * function before `commit`.
   *
   * @throws PaymentsError `inbox_unavailable`, or an error of the database driver, if the inbox cannot be read.
   */
  readonly newerHandled: () => Promise<boolean>;
  /**
   * Aborts if the attempt takes longer than `timeoutMs`. Also aborts if the process sent no heartbeat in time, so that
   * another process may run the delivery, or if the application closes and its drain time is over. Pass the signal to
   * `fetch`, to `PaymentsApiService` and to every other call that takes long.
   */
  readonly signal: AbortSignal;
  /**
   * Runs `work` and marks this delivery as done in one database transaction: both happen, or neither. Do slow work
   * first (call the API, render a receipt) and commit last. On SQLite, `work` is synchronous. If the handler fails
   * after the commit, the delivery stays done. E-mail and calls to other systems are not part of the transaction.
   *
   * Resolves with what `work` returns. Await the promise: otherwise the handler does not fail if its commit fails. An
   * attempt commits at most once. If an attempt never commits, the worker stores the outcome of the attempt when the
   * handler has returned, and the effects of the handler happen at least once.
   *
   * @throws PaymentsError `lease_lost` if the delivery now belongs to another attempt, `commit_unsupported` if the
   *   inbox has no transactions, `commit_rejected` for a second commit; and what `work` throws. In each of these cases,
   *   nothing that `work` wrote is stored.
   * @example
   * ```ts
   * await context.commit((tx) => ledger.book(tx, transaction));
   * ```
   */
  readonly commit: C;
}

/**
 * Type of `context.commit`. If the transaction type has `synchronous: true`, such as `SqliteTransaction`, the work must
 * not return a promise. The work may return any value that has no method `then`.
 */
export type Commit<Tx> = [unknown] extends [Tx]
  ? <R>(work: (tx: Tx) => R | Promise<R>) => Promise<R>
  : [Tx] extends [never]
    ? <R>(work: (tx: Tx) => R | Promise<R>) => Promise<R>
    : [Tx] extends [{ readonly synchronous: true }]
      ? <
          R extends
            | (object & { readonly then?: never })
            | string
            | number
            | bigint
            | boolean
            | symbol
            | null
            | undefined
            | void,
        >(
          work: (tx: Tx) => R,
        ) => Promise<R>
      : <R>(work: (tx: Tx) => R | Promise<R>) => Promise<R>;

const utf8 = new TextDecoder('utf-8', { fatal: true });
const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/;
// Ids and types are keys in a database, which rejects a NUL character and very long text.
const KEY = /^[^\p{Cc}]{1,255}$/u;
const KEY_RULE = 'a string of 1 to 255 characters without control characters';

/**
 * Parses the body of a webhook request into an event. Call this function on verified bytes only. Unknown fields are
 * ignored, a missing `metadata` becomes an empty object, and a `__proto__` key is dropped at every depth.
 *
 * @throws PaymentsError `payload_invalid`. The message names the field and what it must be, but not its value.
 */
export function parseEnvelope(raw: Uint8Array): PaymentEvent {
  const body = parseJson(raw);
  if (!isRecord(body)) throw invalid('body', 'a JSON object');
  const { id, eventType, timestamp, data, metadata = {} } = body;
  if (!isKey(id)) throw invalid('id', KEY_RULE);
  if (!isKey(eventType)) throw invalid('eventType', KEY_RULE);
  if (typeof timestamp !== 'string' || !ISO_8601.test(timestamp) || isNaN(Date.parse(timestamp))) {
    throw invalid('timestamp', 'an ISO 8601 time');
  }
  if (!isRecord(data)) throw invalid('data', 'an object');
  if (metadata !== null && !isRecord(metadata)) throw invalid('metadata', 'an object');
  return { id, eventType, timestamp, data, metadata: metadata ?? {} };
}

function parseJson(raw: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(raw);
  } catch {
    throw invalid('body', 'UTF-8');
  }
  try {
    const body: unknown = JSON.parse(text);
    if (isObject(body)) dropProto(body);
    return body;
  } catch {
    throw invalid('body', 'JSON');
  }
}

/**
 * Deletes `__proto__` keys at every depth. A reviver for `JSON.parse` would be shorter, but takes four times as long as
 * the rest of the parsing.
 *
 * @throws RangeError if the body is nested too deeply for a recursive function. This is intended: later recursive code
 * would fail for this body too.
 */
function dropProto(body: object): void {
  if (Object.hasOwn(body, '__proto__')) delete (body as Record<string, unknown>)['__proto__'];
  for (const value of Object.values(body)) if (isObject(value)) dropProto(value);
}

/** Returns the transaction id of an event; `null` if the event has none. */
export function transactionOf({ data: { transactionId } }: PaymentEvent): string | null {
  return typeof transactionId === 'string' && transactionId !== '' ? transactionId : null;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Whether a value can be the id or the type of an event, or the id of a transaction. */
export function isKey(value: unknown): value is string {
  return typeof value === 'string' && KEY.test(value);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value);
}

function invalid(field: string, expected: string): PaymentsError {
  return new PaymentsError(
    'payload_invalid',
    `The signature is valid but the body is not an event: "${field}" must be ${expected}.`,
  );
}
