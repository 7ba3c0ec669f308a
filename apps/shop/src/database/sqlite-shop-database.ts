import { closeSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { LedgerEntry, LedgerPage, LedgerTotals, Payment } from '../ledger/ledger-entry.js';
import type { CreateOrderDto, Order, OrderProblem, OrderWithPayments } from '../orders/order.js';
import { MAX_SEQ, toLedgerEntry, toLedgerPage, toLedgerTotals } from './ledger-rows.js';
import type { LedgerRow, LedgerTotalsRow } from './ledger-rows.js';
import { ShopDatabase } from './shop-database.js';

/** Amounts are stored as doubles, as they arrive in JSON. Sums are calculated in whole cents. */
const TABLES = `
  BEGIN IMMEDIATE;
  CREATE TABLE IF NOT EXISTS shop_order (
    reference    TEXT PRIMARY KEY,
    amount       REAL NOT NULL,
    checkout_url TEXT,
    problem      TEXT
  ) STRICT;
  CREATE TABLE IF NOT EXISTS shop_ledger (
    seq            INTEGER PRIMARY KEY,
    transaction_id TEXT NOT NULL UNIQUE,
    reference      TEXT,
    amount         REAL NOT NULL,
    recorded_at    TEXT NOT NULL,
    unmatched      INTEGER NOT NULL,
    found_by_poll  INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS shop_ledger_reference ON shop_ledger (reference);
  COMMIT`;

const ORDER = 'reference, amount, checkout_url AS checkoutUrl, problem';
const ENTRY =
  'transaction_id AS transactionId, reference, amount, recorded_at AS recordedAt, unmatched, found_by_poll AS foundByPoll';

/** The orders, the ledger and the inbox in one SQLite file. Several shops on one machine can share the file. */
export class SqliteShopDatabase extends ShopDatabase<SqliteTransaction> {
  readonly inbox;
  /**
   * Resolves when the last write of this process has ended. All writes of the process use one connection, so they run
   * one after the other.
   */
  #lastWrite: Promise<unknown> = Promise.resolve();

  private constructor(
    file: string,
    private readonly database: DatabaseSync,
    /**
     * The connection for writes. While a transaction of this connection is open, the process can read with the other
     * connection.
     */
    private readonly writer: DatabaseSync,
  ) {
    super();
    this.inbox = sqliteInbox({ file });
  }

  /**
   * Opens the SQLite file, and creates the file if it is missing. @throws the error of SQLite if one of these steps
   * fails.
   */
  static async open(file: string): Promise<SqliteShopDatabase> {
    // This module is loaded only if SQLite is used, because older versions of Node print a warning that it is
    // experimental.
    const { DatabaseSync } = await import('node:sqlite');
    // SQLite would create the file readable for all users of the machine.
    closeSync(openSync(file, 'a', 0o600));
    const connections = [new DatabaseSync(file), new DatabaseSync(file)] as const;
    try {
      // The inbox writes to the file too. The thread of the inbox makes the checkpoints for the writes of the inbox and
      // for the writes of the shop.
      for (const connection of connections)
        connection.exec('PRAGMA busy_timeout = 5000; PRAGMA wal_autocheckpoint = 0');
      connections[0].exec(TABLES);
      return new SqliteShopDatabase(file, ...connections);
    } catch (error) {
      for (const connection of connections) connection.close();
      throw error;
    }
  }

  async addOrder(
    { reference, amount }: CreateOrderDto,
    expectPayment: (tx: unknown) => Promise<unknown>,
  ): Promise<Order> {
    await this.#write(async (tx) => {
      const insert =
        'INSERT INTO shop_order (reference, amount) VALUES (?, ?) ON CONFLICT DO NOTHING';
      if (tx.prepare(insert).run(reference, amount).changes === 1) await expectPayment(tx);
    });
    const select = this.database.prepare(`SELECT ${ORDER} FROM shop_order WHERE reference = ?`);
    return { ...select.get(reference)! } as unknown as Order;
  }

  async findOrders(references: readonly string[]): Promise<OrderWithPayments[]> {
    const select = this.database.prepare(
      `SELECT ${ORDER}, (
         SELECT json_group_array(amount ORDER BY seq) FROM shop_ledger
         WHERE reference = o.reference AND NOT unmatched
       ) AS payments, EXISTS(
         SELECT 1 FROM shop_ledger
         WHERE reference = o.reference AND NOT unmatched AND found_by_poll
       ) AS foundByPoll
       FROM shop_order o WHERE reference IN (SELECT value FROM json_each(?))`,
    );
    const rows = select.all(JSON.stringify(references)) as unknown as (Order & {
      payments: string;
      foundByPoll: number;
    })[];
    return rows.map(({ payments, foundByPoll, ...order }) => ({
      ...order,
      payments: JSON.parse(payments) as number[],
      foundByPoll: foundByPoll === 1,
    }));
  }

  /** Stores what is wrong with an order. It is synchronous, because no other connection can write until it ends. */
  setProblem(tx: SqliteTransaction, reference: string, problem: OrderProblem): void {
    tx.prepare(
      "UPDATE shop_order SET problem = ? WHERE reference = ? AND problem IS NOT 'declined'",
    ).run(problem, reference);
  }

  async setCheckoutUrl(reference: string, checkoutUrl: string): Promise<void> {
    const update =
      'UPDATE shop_order SET checkout_url = ? WHERE reference = ? AND checkout_url IS NULL';
    await this.#write((tx) => tx.prepare(update).run(checkoutUrl, reference));
  }

  /** Adds a payment to the ledger synchronously, because all other writers wait for this transaction. */
  recordPayment(
    tx: SqliteTransaction,
    { transactionId, reference, amount, foundByPoll }: Payment,
  ): LedgerEntry | null {
    const row = tx
      .prepare(
        `INSERT INTO shop_ledger (transaction_id, reference, amount, recorded_at, found_by_poll, unmatched)
         VALUES (?1, ?2, ?3, ?4, ?5, NOT EXISTS (SELECT 1 FROM shop_order WHERE reference = ?2))
         ON CONFLICT (transaction_id) DO NOTHING RETURNING ${ENTRY}`,
      )
      .get(transactionId, reference, amount, new Date().toISOString(), Number(foundByPoll));
    return row === undefined ? null : toLedgerEntry(row as unknown as LedgerRow);
  }

  async isRecorded(transactionId: string): Promise<boolean> {
    const select = this.database.prepare('SELECT 1 FROM shop_ledger WHERE transaction_id = ?');
    return select.get(transactionId) !== undefined;
  }

  async ledgerEntries(): Promise<LedgerEntry[]> {
    const rows = this.database.prepare(`SELECT ${ENTRY} FROM shop_ledger ORDER BY seq`).all();
    return (rows as unknown as LedgerRow[]).map(toLedgerEntry);
  }

  async ledgerPage(limit: number, before?: string): Promise<LedgerPage> {
    const select = this.database.prepare(
      `SELECT seq, ${ENTRY} FROM shop_ledger WHERE seq < coalesce(CAST(?2 AS INTEGER), ${MAX_SEQ})
       ORDER BY seq DESC LIMIT ?1`,
    );
    const rows = select.all(limit + 1, before ?? null);
    return toLedgerPage(rows as unknown as (LedgerRow & { seq: number })[], limit);
  }

  async ledgerTotals(): Promise<LedgerTotals> {
    const select = this.database.prepare(
      `SELECT unmatched, count(*) AS payments, sum(round(amount * 100)) AS cents
       FROM shop_ledger GROUP BY unmatched`,
    );
    return toLedgerTotals(select.all() as unknown as LedgerTotalsRow[]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#lastWrite;
    this.database.close();
    this.writer.close();
  }

  /** Calls `work` in a transaction, after all earlier writes have ended. */
  async #write<T>(work: (tx: DatabaseSync) => T | Promise<T>): Promise<T> {
    const write = this.#lastWrite.then(async () => {
      this.writer.exec('BEGIN IMMEDIATE');
      try {
        const result = await work(this.writer);
        this.writer.exec('COMMIT');
        return result;
      } catch (error) {
        this.writer.exec('ROLLBACK');
        throw error;
      }
    });
    this.#lastWrite = write.catch(() => {});
    return write;
  }
}
