import type { Environment } from '../companies/company.js';

/** The kind of payment. The service names these three. */
export type TransactionKind = 'stk-push' | 'checkout-invoice' | 'payout';

/** A checkout invoice with the URL of its checkout page. */
export interface CheckoutInvoice extends Transaction {
  readonly checkoutUrl: string;
}

/** All kinds. */
export const TRANSACTION_KINDS: readonly TransactionKind[] = [
  'stk-push',
  'checkout-invoice',
  'payout',
];

/** A transaction as the emulator stores it. */
export interface Transaction {
  /** UUID. */
  readonly transactionId: string;
  readonly companyId: string;
  readonly environment: Environment;
  readonly kind: TransactionKind;
  /**
   * `complete` after completion. Before, it is the option `pendingStatus`, and after a decline the option `failedStatus`;
   * the service documents neither.
   */
  readonly status: string;
  /** A JSON number, in the unit that the merchant uses. */
  readonly amount: number;
  readonly accountReference: string;
  /** The client's own reference. */
  readonly externalReference: string;
  /** Sent as the event's `metadata`. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** URL of the checkout page. Undefined for other kinds than checkout invoices. */
  readonly checkoutUrl: string | undefined;
  /** URL that the checkout page links back to, if the merchant gave one. */
  readonly returnUrl: string | undefined;
  /** The customer's phone number, as an optional `+` and digits, if the merchant gave one. */
  readonly phoneNumber: string | undefined;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** When it completes by itself, unless it is completed or declined before. ISO 8601, UTC; undefined if not scheduled. */
  readonly completesAt: string | undefined;
  /** ISO 8601, UTC; undefined until it is complete. */
  readonly completedAt: string | undefined;
  /** ISO 8601, UTC; undefined unless it was declined. */
  readonly failedAt: string | undefined;
}

/**
 * The documented fields of a transaction: those of the event. They are the event's `data`, and the emulator's default
 * response to `GET /v1/transactions/{id}`.
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

/** Returns the fields that the service documents. */
export function toTransactionFields(transaction: Transaction): TransactionFields {
  const { transactionId, status, amount, accountReference, externalReference } = transaction;
  return { transactionId, status, amount, accountReference, externalReference };
}

/** Whether a transaction can still be completed or declined. */
export function isOpen({ completedAt, failedAt }: Transaction): boolean {
  return completedAt === undefined && failedAt === undefined;
}
