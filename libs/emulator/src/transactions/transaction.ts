import type { Environment } from '../companies/company.js';

/** The kind of a payment. The service names these three kinds. */
export type TransactionKind = 'stk-push' | 'checkout-invoice' | 'payout';

/** A checkout invoice with the URL of its checkout page. */
export interface CheckoutInvoice extends Transaction {
  readonly checkoutUrl: string;
}

export const TRANSACTION_KINDS: readonly TransactionKind[] = [
  'stk-push',
  'checkout-invoice',
  'payout',
];

/** A transaction as the emulator stores it. */
export interface Transaction {
  /** The id of the transaction, a UUID. */
  readonly transactionId: string;
  readonly companyId: string;
  readonly environment: Environment;
  readonly kind: TransactionKind;
  /**
   * The status: `complete` after completion, otherwise the value of the option `pendingStatus`, or of `failedStatus`
   * after a decline. The service documents only `complete`.
   */
  readonly status: string;
  /** The amount: a JSON number, in the unit that the merchant uses. */
  readonly amount: number;
  readonly accountReference: string;
  /** The client's own reference. */
  readonly externalReference: string;
  /** The `metadata` of the event. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** URL of the checkout page. Undefined for other kinds than checkout invoices. */
  readonly checkoutUrl: string | undefined;
  /** URL that the checkout page links back to, if the merchant gave one. */
  readonly returnUrl: string | undefined;
  /** The customer's phone number, as an optional `+` and digits, if the merchant gave one. */
  readonly phoneNumber: string | undefined;
  /** When the transaction was created. ISO 8601, UTC. */
  readonly createdAt: string;
  /**
   * When the transaction completes by itself, unless it is completed or declined before. ISO 8601, UTC; undefined if no
   * such time is set.
   */
  readonly completesAt: string | undefined;
  /** When the transaction was completed. ISO 8601, UTC; undefined until then. */
  readonly completedAt: string | undefined;
  /** When the transaction was declined. ISO 8601, UTC; undefined if it was not declined. */
  readonly failedAt: string | undefined;
}

/**
 * The fields of a transaction that the service documents. These fields are the event's `data`, and the emulator's
 * default response to `GET /v1/transactions/{id}`.
 */
export interface TransactionFields {
  readonly transactionId: string;
  readonly status: string;
  readonly amount: number;
  readonly accountReference: string;
  readonly externalReference: string;
}

/** The service's status of a completed transaction. */
export const COMPLETE = 'complete';

export function toTransactionFields(transaction: Transaction): TransactionFields {
  const { transactionId, status, amount, accountReference, externalReference } = transaction;
  return { transactionId, status, amount, accountReference, externalReference };
}

export function isOpen({ completedAt, failedAt }: Transaction): boolean {
  return completedAt === undefined && failedAt === undefined;
}
