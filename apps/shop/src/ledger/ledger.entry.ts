/** A payment to be booked. */
export interface Payment {
  readonly transactionId: string;
  /** The event's `externalReference`; `null` where it has none. */
  readonly reference: string | null;
  readonly amount: number;
}

/** A payment that is booked, as `GET /ledger` shows it. */
export interface LedgerEntry extends Payment {
  /** ISO 8601, UTC. */
  readonly bookedAt: string;
  /** Present where the payment matched no order when it was booked: money, but somebody must see to it. */
  readonly unmatched?: true;
}

/** An entry as the databases have it. */
export interface LedgerRow extends Payment {
  readonly bookedAt: string | Date;
  readonly unmatched: unknown;
}

/** The entry that a row holds. */
export function toEntry({ bookedAt, unmatched, ...payment }: LedgerRow): LedgerEntry {
  return {
    ...payment,
    bookedAt: new Date(bookedAt).toISOString(),
    ...(unmatched ? { unmatched: true } : {}),
  };
}
