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

/** A part of the ledger, as the ledger's page shows it. */
export interface LedgerPage {
  /** Newest first. */
  readonly entries: readonly LedgerEntry[];
  /** Where the next, older, page begins; `null` where this is the last. */
  readonly next: string | null;
}

/** What the whole ledger comes to. */
export interface LedgerTotals {
  /** How many payments are booked. */
  readonly payments: number;
  /** Sum of their amounts. */
  readonly amount: number;
  /** Those of them that matched no order. */
  readonly unmatched: { readonly payments: number; readonly amount: number };
}

/** Entries of a kind, counted by a database. */
export interface TotalRow {
  readonly unmatched: unknown;
  readonly payments: number;
  readonly cents: number;
}

/** An entry as the databases have it. */
export interface LedgerRow extends Payment {
  readonly bookedAt: string | Date;
  readonly unmatched: unknown;
}

/** The entry that a row holds. */
export function toEntry({
  transactionId,
  reference,
  amount,
  bookedAt,
  unmatched,
}: LedgerRow): LedgerEntry {
  return {
    transactionId,
    reference,
    amount,
    bookedAt: new Date(bookedAt).toISOString(),
    ...(unmatched ? { unmatched: true } : {}),
  };
}

/** The page that the newest `limit` rows hold, of one row more, which tells whether there is another page. */
export function toPage(
  rows: readonly (LedgerRow & { readonly seq: number | string })[],
  limit: number,
): LedgerPage {
  const shown = rows.slice(0, limit);
  return {
    entries: shown.map(toEntry),
    next: rows.length > limit ? String(shown.at(-1)!.seq) : null,
  };
}

/** The totals that the counts of matched and unmatched entries come to. */
export function toTotals(rows: readonly TotalRow[]): LedgerTotals {
  const lost = rows.filter(({ unmatched }) => unmatched);
  return { ...total(rows), unmatched: total(lost) };
}

function total(rows: readonly TotalRow[]): { payments: number; amount: number } {
  return {
    payments: rows.reduce((sum, row) => sum + row.payments, 0),
    amount: rows.reduce((sum, row) => sum + row.cents, 0) / 100,
  };
}
