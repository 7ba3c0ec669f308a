import { closeSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { sqliteInbox } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments';
import { toEntry, toPage, toTotals } from '../ledger/ledger.entry.js';
import type {
  LedgerEntry,
  LedgerPage,
  LedgerRow,
  LedgerTotals,
  Payment,
  TotalRow,
} from '../ledger/ledger.entry.js';
import type { BookedOrder, Order } from '../orders/order.js';
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

/** Beyond every number an entry can have. */
const LAST = '9223372036854775807';

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
    // SQLite would create it readable by every user of the machine. Nothing has it open yet.
    closeSync(openSync(file, 'a', 0o600));
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
    const select = this.database.prepare(`SELECT ${ORDER} FROM shop_order WHERE reference = ?`);
    return { ...select.get(reference)! } as unknown as Order;
  }

  async findOrders(references: readonly string[]): Promise<BookedOrder[]> {
    const select = this.database.prepare(
      `SELECT ${ORDER}, (
         SELECT json_group_array(amount ORDER BY seq) FROM shop_ledger
         WHERE reference = o.reference AND NOT unmatched
       ) AS payments
       FROM shop_order o WHERE reference IN (SELECT value FROM json_each(?))`,
    );
    const rows = select.all(JSON.stringify(references)) as unknown as (Order & {
      payments: string;
    })[];
    return rows.map((row) => ({ ...row, payments: JSON.parse(row.payments) as number[] }));
  }

  async setCheckoutUrl(reference: string, checkoutUrl: string): Promise<void> {
    this.database
      .prepare(
        'UPDATE shop_order SET checkout_url = ? WHERE reference = ? AND checkout_url IS NULL',
      )
      .run(checkoutUrl, reference);
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

  async page(limit: number, before?: string): Promise<LedgerPage> {
    const select = this.database.prepare(
      `SELECT seq, ${ENTRY} FROM shop_ledger WHERE seq < coalesce(CAST(?2 AS INTEGER), ${LAST})
       ORDER BY seq DESC LIMIT ?1`,
    );
    const rows = select.all(limit + 1, before ?? null);
    return toPage(rows as unknown as (LedgerRow & { seq: number })[], limit);
  }

  async totals(): Promise<LedgerTotals> {
    const select = this.database.prepare(
      `SELECT unmatched, count(*) AS payments, sum(round(amount * 100)) AS cents
       FROM shop_ledger GROUP BY unmatched`,
    );
    return toTotals(select.all() as unknown as TotalRow[]);
  }

  /** The last number is enough: SQLite has one writer at a time. */
  async version(): Promise<string> {
    const row = this.database.prepare('SELECT max(seq) AS last FROM shop_ledger').get()!;
    return String(row['last']);
  }

  async onApplicationShutdown(): Promise<void> {
    this.database.close();
  }
}
