import type { LedgerEntry } from './shop-client.js';

/** A transaction that is complete at the payments service. */
export interface CompletedPayment {
  readonly transactionId: string;
  readonly externalReference: string;
  readonly amount: number;
}

/** A transaction, with its amount at the payments service and its amount in the ledger. */
export interface LedgerCheckRow {
  readonly transactionId: string;
  readonly reference: string;
  readonly paid: number;
  readonly recorded: number;
  /** `ok`, or the error. */
  readonly result: string;
}

/**
 * Compares the ledger with the payments. Returns a row for each payment, and then a row for each ledger entry without a
 * payment.
 */
export function checkLedger(
  paid: readonly CompletedPayment[],
  ledger: readonly LedgerEntry[],
): LedgerCheckRow[] {
  const checked = paid.map((payment) => {
    const { transactionId, externalReference: reference, amount } = payment;
    const entries = ledger.filter((entry) => entry.transactionId === transactionId);
    return {
      transactionId,
      reference,
      paid: amount,
      recorded: sum(entries.map((entry) => entry.amount)),
      result: compare(payment, entries),
    };
  });
  const known = new Set(paid.map(({ transactionId }) => transactionId));
  const unpaid = ledger
    .filter(({ transactionId }) => !known.has(transactionId))
    .map(({ transactionId, reference, amount }) => ({
      transactionId,
      reference: String(reference),
      paid: 0,
      recorded: amount,
      result: 'NEVER PAID',
    }));
  return [...checked, ...unpaid];
}

/** Whether no row of the ledger check has an error. */
export function isCorrect(rows: readonly LedgerCheckRow[]): boolean {
  return rows.every(({ result }) => result.startsWith('ok'));
}

/** Formats the rows as a table with a row of totals. */
export function formatTable(rows: readonly LedgerCheckRow[]): string[] {
  const total = {
    reference: 'total',
    transactionId: `${rows.length} payments`,
    paid: sum(rows.map(({ paid }) => paid)),
    recorded: sum(rows.map(({ recorded }) => recorded)),
    result: isCorrect(rows) ? 'the ledger is right' : 'THE LEDGER IS WRONG',
  };
  const heading = ['reference', 'transaction', 'paid', 'recorded', ''];
  const cells = [...rows, total].map((row) => [
    row.reference,
    // The first characters of an id are unique.
    row.transactionId.slice(0, 13),
    row.paid.toFixed(2),
    row.recorded.toFixed(2),
    row.result,
  ]);
  const lines = [heading, ...cells].map(([reference, id, paid, recorded, result]) =>
    `    ${reference!.padEnd(14)}${id!.padEnd(15)}${paid!.padStart(10)}${recorded!.padStart(10)}   ${result}`.trimEnd(),
  );
  return lines;
}

function compare(paid: CompletedPayment, entries: readonly LedgerEntry[]): string {
  const [entry] = entries;
  if (entry === undefined) return 'LOST';
  if (entries.length > 1) return `RECORDED ${entries.length} TIMES`;
  if (entry.amount !== paid.amount) return 'WRONG AMOUNT';
  if (entry.reference !== paid.externalReference) return 'WRONG REFERENCE';
  return entry.unmatched ? 'ok, matches no order' : 'ok';
}

/** Adds amounts in whole cents, so that the sum is exact. */
function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + Math.round(amount * 100), 0) / 100;
}
