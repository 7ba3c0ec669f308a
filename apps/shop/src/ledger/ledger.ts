import { Injectable } from '@nestjs/common';
import { cents } from '../amount.js';

/** A payment to be booked. */
export interface Payment {
  readonly transactionId: string;
  /** The event's `externalReference`; `null` where it has none. */
  readonly reference: string | null;
  readonly amount: number;
  /** Whether there is an order of that reference. */
  readonly matched: boolean;
}

/** A payment that is booked, as `GET /ledger` shows it. */
export interface LedgerEntry extends Omit<Payment, 'matched'> {
  /** ISO 8601, UTC. */
  readonly bookedAt: string;
  /** Present where the payment matched no order when it was booked: money, but somebody must see to it. */
  readonly unmatched?: true;
}

/** The payments booked, one entry a transaction; in this process's memory, so a restart forgets them. */
@Injectable()
export class Ledger {
  readonly #entries = new Map<string, LedgerEntry>();

  async has(transactionId: string): Promise<boolean> {
    return this.#entries.has(transactionId);
  }

  /** Books a payment. Resolves with the entry, or `null` where the transaction is booked already. */
  async book({ matched, ...payment }: Payment): Promise<LedgerEntry | null> {
    if (this.#entries.has(payment.transactionId)) return null;
    const bookedAt = new Date().toISOString();
    const entry: LedgerEntry = { ...payment, bookedAt, ...(matched ? {} : { unmatched: true }) };
    this.#entries.set(entry.transactionId, entry);
    return entry;
  }

  /** Every entry, in the order of booking. */
  async entries(): Promise<LedgerEntry[]> {
    return [...this.#entries.values()];
  }

  /** Sum of what was booked for the order of a reference. */
  async paidFor(reference: string): Promise<number> {
    const payments = [...this.#entries.values()].filter(
      (entry) => entry.reference === reference && !entry.unmatched,
    );
    return payments.reduce((sum, { amount }) => sum + cents(amount), 0) / 100;
  }
}
