/**
 * The `data` of each known event type. An application adds the types its service sends by augmenting it:
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
 * `data` of a `transaction.completed` event, as the service documents it. The module checks a signed body against it
 * only if the handler names a DTO class (`data` of `@OnPaymentEvent`).
 */
export type TransactionCompletedData = {
  /** Id of the transaction (UUID). */
  transactionId: string;
  /** Status of the transaction; `complete` is the only value that the service documents. */
  status: string;
  /** Amount of the transaction. The service does not document its unit. */
  amount: number;
  /** Account reference of the transaction. */
  accountReference: string;
  /** Reference the application gave the transaction. */
  externalReference: string;
};

/** Type of the event that the service sends to test a webhook. It needs no handler. */
export const TEST_EVENT_TYPE = 'webhook.test';

/** A known event type, or any other string. */
export type PaymentEventType = keyof PaymentEventMap | (string & {});

/** The `data` of events of type `T`: what {@link PaymentEventMap} says, or an unknown object. */
export type PaymentEventData<T extends string> = T extends keyof PaymentEventMap
  ? PaymentEventMap[T]
  : Record<string, unknown>;

/** An event as the service sends it: its envelope, verified and parsed. */
export interface PaymentEvent<T extends PaymentEventType = string, D = PaymentEventData<T>> {
  /** Unique event id, 1 to 255 characters (a UUID at the service). */
  readonly id: string;
  /** Kind of event, 1 to 255 characters, e.g. `transaction.completed`. */
  readonly eventType: T;
  /** Time of the event, ISO 8601. */
  readonly timestamp: string;
  /** The payload. */
  readonly data: D;
  /** Further facts; an empty object if the body has none. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * What a handler gets next to the event: facts about this attempt. Pass it on as it is: a copy (`{ ...context }`) lacks
 * `raw` and `signal`, which are getters. `Tx` is the transaction of the inbox in use, such as `PostgresTransaction`.
 */
export interface PaymentEventContext<Tx = unknown> {
  /** Id of the company the delivery was signed for. */
  readonly company: string;
  /** Name of the handler that runs. */
  readonly handler: string;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** When the first copy of the delivery was received. */
  readonly receivedAt: Date;
  /** The body, byte for byte as it was signed. A copy: changing it changes nothing. */
  readonly raw: Buffer;
  /**
   * Whether this handler has already done an event of the same transaction (`data.transactionId`) with a later
   * timestamp: the service keeps no order, so this one may be old news.
   */
  readonly newerHandled: boolean;
  /**
   * Aborts if the attempt takes longer than `timeoutMs`, if the process was cut off for so long that another may run the
   * delivery, and if the application closes and waits no longer. Pass it to `fetch`, to `PaymentsApiService` and to
   * everything else that takes long.
   */
  readonly signal: AbortSignal;
  /**
   * Runs `work` and marks this delivery done in one database transaction: both happen, or neither. Do what is slow
   * first (call the API, render a receipt) and commit last. If the handler fails after that, the delivery stays done.
   * E-mail and calls to other systems are not in the transaction.
   *
   * Resolves with what `work` returns. Await it: a handler that does not fails if its commit fails. A run commits once;
   * one that never commits is settled when the handler has returned, and its effects then happen at least once.
   *
   * @throws PaymentsError `lease_lost` if the delivery belongs to another run by now, `commit_unsupported` if the inbox
   *   has no transactions, `commit_refused` for a second commit; and what `work` throws. In each case nothing of `work`
   *   is stored.
   * @example
   * ```ts
   * await context.commit((tx) => ledger.book(tx, transaction));
   * ```
   */
  readonly commit: <R>(work: (tx: Tx) => R | Promise<R>) => Promise<R>;
}
