import type { OnApplicationShutdown } from '@nestjs/common';
import type { InboxDefinition } from 'nestjs-payments';
import type { LedgerEntry, LedgerPage, LedgerTotals, Payment } from '../ledger/ledger-entry.js';
import type { CreateOrderDto, Order, OrderProblem, OrderWithPayments } from '../orders/order.js';

/**
 * The database of the shop: orders, ledger and inbox. Because one database contains the ledger and the inbox, one
 * transaction adds a payment to the ledger and sets its delivery to done. After a crash, the database contains both
 * changes or neither.
 *
 * `Tx` is the type of this transaction, which `context.commit` of the inbox passes to the handler.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- each implementation sets its own type
export abstract class ShopDatabase<Tx = unknown> implements OnApplicationShutdown {
  /** The store of the inbox, which is in the same database as the orders and the ledger. */
  abstract readonly inbox: InboxDefinition;

  /**
   * Stores an order, unless an order with the same reference exists. Resolves with the stored order. `expectPayment`
   * writes in the same transaction, so that no order is stored without its expectation.
   */
  abstract addOrder(
    order: CreateOrderDto,
    expectPayment: (tx: unknown) => Promise<unknown>,
  ): Promise<Order>;

  /** Finds the orders with these references, in one query. References without an order are omitted. */
  abstract findOrders(references: readonly string[]): Promise<OrderWithPayments[]>;

  /**
   * Stores why an order has no payment, in a transaction of the inbox. Does not change an order that already has the
   * problem `declined`.
   */
  abstract setProblem(tx: Tx, reference: string, problem: OrderProblem): void | Promise<void>;

  /** Stores the address of the checkout page of an order, unless the order already has such an address. */
  abstract setCheckoutUrl(reference: string, checkoutUrl: string): Promise<void>;

  /**
   * Adds a payment to the ledger, in a transaction of the inbox. The entry is `unmatched` if no order has the reference
   * of the payment. Returns `null` if the ledger has an entry with this transaction id already.
   */
  abstract recordPayment(
    tx: Tx,
    payment: Payment,
  ): LedgerEntry | null | Promise<LedgerEntry | null>;

  /** Whether the ledger has an entry with this transaction id. */
  abstract isRecorded(transactionId: string): Promise<boolean>;

  /** Returns all entries of the ledger, oldest first. */
  abstract ledgerEntries(): Promise<LedgerEntry[]>;

  /**
   * Returns a page of at most `limit` ledger entries, newest first. If `before` is set, all entries are older than this
   * cursor, which is the field `next` of another page.
   */
  abstract ledgerPage(limit: number, before?: string): Promise<LedgerPage>;

  /** Returns the sums of all ledger entries. Reads the whole ledger. */
  abstract ledgerTotals(): Promise<LedgerTotals>;

  /**
   * Closes the connections to the database. Nest calls this method when no handler and no request is running any more.
   */
  abstract onApplicationShutdown(): Promise<void>;
}
