/** A payment for the ledger. */
export interface Payment {
  readonly transactionId: string;
  /** The `externalReference` of the event, or `null` if the event has no such field. */
  readonly reference: string | null;
  readonly amount: number;
  /** Whether the module found the payment by asking the service. Otherwise a webhook request reported the payment. */
  readonly foundByPoll: boolean;
}

/** A recorded payment, as `GET /api/ledger` returns it. */
export interface LedgerEntry extends Omit<Payment, 'foundByPoll'> {
  /** When the payment was recorded. ISO 8601, UTC. */
  readonly recordedAt: string;
  /**
   * Present if no order had the reference when the payment was recorded. A person must decide what to do with the
   * payment.
   */
  readonly unmatched?: true;
  /** Present if the module found the payment by asking the service, because no webhook request had arrived. */
  readonly foundByPoll?: true;
}

/** A page of the ledger, as `GET /api/ledger/page` returns it. */
export interface LedgerPage {
  /** The entries of the page, newest first. */
  readonly entries: readonly LedgerEntry[];
  /** Cursor of the next page with older entries, or `null` if this is the last page. */
  readonly next: string | null;
}

/** Sums of the whole ledger. */
export interface LedgerTotals {
  /** Number of recorded payments. */
  readonly payments: number;
  /** Sum of the amounts of the recorded payments. */
  readonly amount: number;
  /** Number and sum of the payments that belong to no order. */
  readonly unmatched: { readonly payments: number; readonly amount: number };
}
