import type { DatabaseSync } from 'node:sqlite';
import { sqliteInbox } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments';
import { toEntry } from '../ledger/ledger.entry.js';
import type { LedgerEntry, LedgerRow, Payment } from '../ledger/ledger.entry.js';
import type { Order } from '../orders/order.js';
import { Books } from './books.js';

/** Amounts are what the JSON said, a double; the sums are made of whole cents, in the code. */
const TABLES = `
  BEGIN IMMEDIATE;
  CREATE TABLE IF NOT EXISTS shop_order (
    reference    TEXT PRIMARY KEY,
    amount       REAL NOT NULL,
    checkout_url TEXT
  ) STRICT;
  CREATE TABLE IF NOT EXISTS shop_ledger (
    seq            INTEGER PRIMARY KEY,
    transaction_id TEXT NOT NULL UNIQUE,
    reference      TEXT,
    amount         REAL NOT NULL,
    booked_at      TEXT NOT NULL,
    unmatched      INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS shop_ledger_reference ON shop_ledger (reference);
  COMMIT`;

const ORDER = 'reference, amount, checkout_url AS checkoutUrl';
const ENTRY =
  'transaction_id AS transactionId, reference, amount, booked_at AS bookedAt, unmatched';

/** Books and inbox in one SQLite file. Several shops of one machine may share it. */
export class SqliteBooks extends Books<SqliteTransaction> {
  readonly inbox;

  private constructor(
    file: string,
    private readonly database: DatabaseSync,
  ) {
    super();
    this.inbox = sqliteInbox({ file });
  }

  /** Opens the file, and makes it where there is none. @throws SQLite's own error where it can't be used. */
  static async open(file: string): Promise<SqliteBooks> {
    // Loaded here, since on older Nodes it prints a warning that it is experimental.
    const { DatabaseSync } = await import('node:sqlite');
    const database = new DatabaseSync(file);
    try {
      // A connection of its own beside the inbox's, which makes the checkpoints of both in its own thread.
      database.exec('PRAGMA busy_timeout = 5000; PRAGMA wal_autocheckpoint = 0');
      database.exec(TABLES);
      return new SqliteBooks(file, database);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  async addOrder({ reference, amount, checkoutUrl }: Order): Promise<Order> {
    this.database
      .prepare('INSERT INTO shop_order VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
      .run(reference, amount, checkoutUrl);
    return (await this.findOrder(reference))!;
  }

  async findOrder(reference: string): Promise<Order | undefined> {
    const select = this.database.prepare(`SELECT ${ORDER} FROM shop_order WHERE reference = ?`);
    const row = select.get(reference);
    return row && ({ ...row } as unknown as Order);
  }

  async setCheckoutUrl(reference: string, checkoutUrl: string): Promise<Order> {
    this.database
      .prepare(
        'UPDATE shop_order SET checkout_url = ? WHERE reference = ? AND checkout_url IS NULL',
      )
      .run(checkoutUrl, reference);
    return (await this.findOrder(reference))!;
  }

  /** Not `async`: everybody who writes waits for this transaction, so it awaits nothing. */
  book(tx: SqliteTransaction, { transactionId, reference, amount }: Payment): LedgerEntry | null {
    const row = tx
      .prepare(
        `INSERT INTO shop_ledger (transaction_id, reference, amount, booked_at, unmatched)
         VALUES (?1, ?2, ?3, ?4, NOT EXISTS (SELECT 1 FROM shop_order WHERE reference = ?2))
         ON CONFLICT (transaction_id) DO NOTHING RETURNING ${ENTRY}`,
      )
      .get(transactionId, reference, amount, new Date().toISOString());
    return row === undefined ? null : toEntry(row as unknown as LedgerRow);
  }

  async isBooked(transactionId: string): Promise<boolean> {
    const select = this.database.prepare('SELECT 1 FROM shop_ledger WHERE transaction_id = ?');
    return select.get(transactionId) !== undefined;
  }

  async entries(): Promise<LedgerEntry[]> {
    const rows = this.database.prepare(`SELECT ${ENTRY} FROM shop_ledger ORDER BY seq`).all();
    return (rows as unknown as LedgerRow[]).map(toEntry);
  }

  async amountsFor(reference: string): Promise<number[]> {
    const select = this.database.prepare(
      'SELECT amount FROM shop_ledger WHERE reference = ? AND NOT unmatched ORDER BY seq',
    );
    return select.all(reference).map(({ amount }) => Number(amount));
  }

  async onApplicationShutdown(): Promise<void> {
    this.database.close();
  }
}
