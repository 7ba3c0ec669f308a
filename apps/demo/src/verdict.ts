import type { BookedPayment } from './shop.client.js';

/** A payment the service has really received. */
export interface RealPayment {
  readonly transactionId: string;
  readonly externalReference: string;
  readonly amount: number;
}

/** A transaction on both sides: paid at the service, booked at the shop. */
export interface VerdictRow {
  readonly transactionId: string;
  readonly reference: string;
  readonly paid: number;
  readonly booked: number;
  /** `ok`, or what is wrong. */
  readonly verdict: string;
}

/** Holds the ledger against what was really paid: a row a transaction, those nobody paid at the end. */
export function judge(
  paid: readonly RealPayment[],
  ledger: readonly BookedPayment[],
): VerdictRow[] {
  const real = paid.map((payment) => {
    const { transactionId, externalReference: reference, amount } = payment;
    const entries = ledger.filter((entry) => entry.transactionId === transactionId);
    return {
      transactionId,
      reference,
      paid: amount,
      booked: sum(entries.map((entry) => entry.amount)),
      verdict: compare(payment, entries),
    };
  });
  const known = new Set(paid.map(({ transactionId }) => transactionId));
  const invented = ledger
    .filter(({ transactionId }) => !known.has(transactionId))
    .map(({ transactionId, reference, amount }) => ({
      transactionId,
      reference: String(reference),
      paid: 0,
      booked: amount,
      verdict: 'NEVER PAID',
    }));
  return [...real, ...invented];
}

/** Whether every row is right. */
export function isExact(rows: readonly VerdictRow[]): boolean {
  return rows.every(({ verdict }) => verdict.startsWith('ok'));
}

/** The rows as a table, with the sums below. */
export function toTable(rows: readonly VerdictRow[]): string[] {
  const total = {
    reference: 'total',
    transactionId: `${rows.length} payments`,
    paid: sum(rows.map(({ paid }) => paid)),
    booked: sum(rows.map(({ booked }) => booked)),
    verdict: isExact(rows) ? 'the ledger is right' : 'THE LEDGER IS WRONG',
  };
  const heading = ['reference', 'transaction', 'paid', 'booked', ''];
  const cells = [...rows, total].map((row) => [
    row.reference,
    // Of an id as much as tells it from the others.
    row.transactionId.slice(0, 13),
    row.paid.toFixed(2),
    row.booked.toFixed(2),
    row.verdict,
  ]);
  const lines = [heading, ...cells].map(([reference, id, paid, booked, verdict]) =>
    `    ${reference!.padEnd(14)}${id!.padEnd(15)}${paid!.padStart(10)}${booked!.padStart(10)}   ${verdict}`.trimEnd(),
  );
  return lines;
}

function compare(paid: RealPayment, entries: readonly BookedPayment[]): string {
  const [entry] = entries;
  if (entry === undefined) return 'LOST';
  if (entries.length > 1) return `BOOKED ${entries.length} TIMES`;
  if (entry.amount !== paid.amount) return 'WRONG AMOUNT';
  if (entry.reference !== paid.externalReference) return 'WRONG REFERENCE';
  return entry.unmatched ? 'ok, matches no order' : 'ok';
}

/** In cents, so that many small amounts add up. */
function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + Math.round(amount * 100), 0) / 100;
}
