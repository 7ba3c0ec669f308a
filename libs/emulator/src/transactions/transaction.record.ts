import type { Environment } from '../companies/company.record.js';

/** How a transaction came to be: the ways of paying the service's page names (section 1). */
export type TransactionKind = 'stk-push' | 'checkout-invoice' | 'payout';

/** Every kind. */
export const TRANSACTION_KINDS: readonly TransactionKind[] = [
  'stk-push',
  'checkout-invoice',
  'payout',
];

/** A transaction as the emulator holds it. */
export interface Transaction {
  /** UUID. */
  readonly transactionId: string;
  readonly companyId: string;
  readonly environment: Environment;
  readonly kind: TransactionKind;
  /**
   * `complete` once it is. Before that the emulator's own `pendingStatus`, and where it was declined
   * its own `failedStatus`: the service's page shows neither.
   */
  readonly status: string;
  /** As a JSON number, in whatever unit the merchant uses. */
  readonly amount: number;
  readonly accountReference: string;
  /** The client's own reference. */
  readonly externalReference: string;
  /** Goes into the event's `metadata`. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Where a customer pays a checkout invoice; undefined for the other kinds. */
  readonly checkoutUrl: string | undefined;
  /** Where the checkout page leads back to, where the merchant gave it. */
  readonly returnUrl: string | undefined;
  /** The phone it is for, as `+` and digits or digits alone, where the merchant gave it. */
  readonly phoneNumber: string | undefined;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** ISO 8601, UTC; undefined until it is complete. */
  readonly completedAt: string | undefined;
  /** ISO 8601, UTC; undefined unless it was declined. */
  readonly failedAt: string | undefined;
}

/**
 * What is known of a transaction's fields: those of the event (section 2 of the service's page).
 * It is the event's `data`, and the emulator's default answer to `GET /v1/transactions/{id}`.
 */
export interface TransactionFields {
  readonly transactionId: string;
  readonly status: string;
  readonly amount: number;
  readonly accountReference: string;
  readonly externalReference: string;
}

/** The status of a completed transaction (section 3 of the service's page). */
export const COMPLETE = 'complete';

/** The fields the service's page shows. */
export function toTransactionFields(transaction: Transaction): TransactionFields {
  const { transactionId, status, amount, accountReference, externalReference } = transaction;
  return { transactionId, status, amount, accountReference, externalReference };
}

/** Whether it can still be paid, or declined. */
export function isOpen({ completedAt, failedAt }: Transaction): boolean {
  return completedAt === undefined && failedAt === undefined;
}
