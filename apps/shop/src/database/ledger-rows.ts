import type { LedgerEntry, LedgerPage, LedgerTotals, Payment } from '../ledger/ledger-entry.js';

/** The largest value of `seq`, the number of a ledger entry, in either database. */
export const MAX_SEQ = '9223372036854775807';

/** A ledger entry as a database returns it. */
export interface LedgerRow extends Omit<Payment, 'foundByPoll'> {
  readonly recordedAt: string | Date;
  readonly unmatched: unknown;
  readonly foundByPoll: unknown;
}

/** The number and the sum of either the matched or the unmatched ledger entries, as a database returns them. */
export interface LedgerTotalsRow {
  readonly unmatched: unknown;
  readonly payments: number;
  readonly cents: number;
}

/** Converts a row to a ledger entry. */
export function toLedgerEntry(row: LedgerRow): LedgerEntry {
  const { transactionId, reference, amount, recordedAt, unmatched, foundByPoll } = row;
  return {
    transactionId,
    reference,
    amount,
    recordedAt: new Date(recordedAt).toISOString(),
    ...(unmatched ? { unmatched: true } : {}),
    ...(foundByPoll ? { foundByPoll: true } : {}),
  };
}

/** Converts up to `limit + 1` rows to a page of `limit` entries. The additional row shows that older entries exist. */
export function toLedgerPage(
  rows: readonly (LedgerRow & { readonly seq: number | string })[],
  limit: number,
): LedgerPage {
  const shown = rows.slice(0, limit);
  return {
    entries: shown.map(toLedgerEntry),
    next: rows.length > limit ? String(shown.at(-1)!.seq) : null,
  };
}

/** Adds up the row of the matched entries and the row of the unmatched entries. */
export function toLedgerTotals(rows: readonly LedgerTotalsRow[]): LedgerTotals {
  return { ...sumOf(rows), unmatched: sumOf(rows.filter(({ unmatched }) => unmatched)) };
}

function sumOf(rows: readonly LedgerTotalsRow[]): { payments: number; amount: number } {
  return {
    payments: rows.reduce((sum, row) => sum + row.payments, 0),
    amount: rows.reduce((sum, row) => sum + row.cents, 0) / 100,
  };
}
