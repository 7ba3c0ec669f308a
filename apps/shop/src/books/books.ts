import type { OnApplicationShutdown } from '@nestjs/common';
import type { InboxDefinition } from 'nestjs-payments';
import type { LedgerEntry, LedgerPage, LedgerTotals, Payment } from '../ledger/ledger.entry.js';
import type { BookedOrder, Order } from '../orders/order.js';

/**
 * What the shop must not forget: its orders and its ledger, in one database with the inbox. That they are in one
 * is the point: a payment is booked and its delivery is settled in one transaction, so a crash leaves both or
 * neither.
 *
 * `Tx` is that transaction, as `context.commit` of the inbox hands it out.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- each of the databases says what it is
export abstract class Books<Tx = unknown> implements OnApplicationShutdown {
  /** The inbox that is in the same database. */
  abstract readonly inbox: InboxDefinition;

  /** Stores an order, unless its reference is taken. Resolves with the order that is stored. */
  abstract addOrder(order: Order): Promise<Order>;

  /** The orders of these references, as far as there are any, in one query. */
  abstract findOrders(references: readonly string[]): Promise<BookedOrder[]>;

  /** Notes where an order is paid, unless that is known. */
  abstract setCheckoutUrl(reference: string, checkoutUrl: string): Promise<void>;

  /**
   * Books a payment in a transaction of the inbox: as unmatched where there is no order of its reference. `null`
   * where the transaction id is booked already.
   */
  abstract book(tx: Tx, payment: Payment): LedgerEntry | null | Promise<LedgerEntry | null>;

  abstract isBooked(transactionId: string): Promise<boolean>;

  /** Every entry, in the order of booking. */
  abstract entries(): Promise<LedgerEntry[]>;

  /** At most `limit` entries, newest first: those before `before`, the `next` of another page, or the newest. */
  abstract page(limit: number, before?: string): Promise<LedgerPage>;

  /** What all entries come to. Reads them all: for when there is a new one, and not for each look. */
  abstract totals(): Promise<LedgerTotals>;

  /** A text that is another one once there are other entries; cheap, however many there are. */
  abstract version(): Promise<string>;

  /** Closes them: the last of Nest's hooks, when nothing is handled or answered any more. */
  abstract onApplicationShutdown(): Promise<void>;
}
