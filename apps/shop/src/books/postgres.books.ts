import { Logger } from '@nestjs/common';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresTransaction } from 'nestjs-payments/postgres';
import { Pool } from 'pg';
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

/**
 * Sent as one message, which PostgreSQL runs as one transaction. The lock has instances that start at the same
 * moment make the tables one after the other; IF NOT EXISTS alone would let one of them fail.
 *
 * Amounts are what the JSON said, a double; the sums are made of whole cents, in the code.
 */
const TABLES = `
  SELECT pg_advisory_xact_lock(hashtext('shop tables'));
  CREATE TABLE IF NOT EXISTS shop_order (
    reference    text PRIMARY KEY,
    amount       double precision NOT NULL,
    checkout_url text
  );
  CREATE TABLE IF NOT EXISTS shop_ledger (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction_id text NOT NULL UNIQUE,
    reference      text,
    amount         double precision NOT NULL,
    booked_at      timestamptz NOT NULL DEFAULT now(),
    unmatched      boolean NOT NULL
  );
  CREATE INDEX IF NOT EXISTS shop_ledger_reference ON shop_ledger (reference)`;

const ORDER = 'reference, amount, checkout_url AS "checkoutUrl"';
const ENTRY =
  'transaction_id AS "transactionId", reference, amount, booked_at AS "bookedAt", unmatched';

/** Beyond every number an entry can have. */
const LAST = '9223372036854775807';

/** Books and inbox in one PostgreSQL database, for any number of shops. */
export class PostgresBooks extends Books<PostgresTransaction> {
  readonly inbox;

  private constructor(
    connectionString: string,
    private readonly pool: Pool,
  ) {
    super();
    // It has connections of its own: neither waits for those the other has taken.
    this.inbox = postgresInbox({ connectionString });
  }

  /** Connects, and makes the tables where they are missing. @throws what `pg` throws where it can't. */
  static async open(connectionString: string): Promise<PostgresBooks> {
    const pool = new Pool({
      connectionString,
      max: 5,
      connectionTimeoutMillis: 5000,
      query_timeout: 10_000,
      allowExitOnIdle: true,
    });
    // An idle connection was cut. The next statement gets another; with nobody listening the process would end.
    pool.on('error', ({ message }) => new Logger('Books').warn(`A connection was cut: ${message}`));
    try {
      await pool.query(TABLES);
      return new PostgresBooks(connectionString, pool);
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  async addOrder({ reference, amount, checkoutUrl }: Order): Promise<Order> {
    await this.pool.query('INSERT INTO shop_order VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
      reference,
      amount,
      checkoutUrl,
    ]);
    const select = `SELECT ${ORDER} FROM shop_order WHERE reference = $1`;
    return (await this.pool.query<Order>(select, [reference])).rows[0]!;
  }

  async findOrders(references: readonly string[]): Promise<BookedOrder[]> {
    const { rows } = await this.pool.query<BookedOrder>(
      `SELECT ${ORDER}, ARRAY(
         SELECT l.amount FROM shop_ledger l
         WHERE l.reference = o.reference AND NOT l.unmatched ORDER BY l.seq
       ) AS payments
       FROM shop_order o WHERE reference = ANY($1)`,
      [references],
    );
    return rows;
  }

  async setCheckoutUrl(reference: string, checkoutUrl: string): Promise<void> {
    await this.pool.query(
      'UPDATE shop_order SET checkout_url = $1 WHERE reference = $2 AND checkout_url IS NULL',
      [checkoutUrl, reference],
    );
  }

  async book(
    tx: PostgresTransaction,
    { transactionId, reference, amount }: Payment,
  ): Promise<LedgerEntry | null> {
    const { rows } = await tx.query<LedgerRow>(
      `INSERT INTO shop_ledger (transaction_id, reference, amount, unmatched)
       VALUES ($1, $2, $3, NOT EXISTS (SELECT 1 FROM shop_order WHERE reference = $2))
       ON CONFLICT (transaction_id) DO NOTHING RETURNING ${ENTRY}`,
      [transactionId, reference, amount],
    );
    return rows[0] === undefined ? null : toEntry(rows[0]);
  }

  async isBooked(transactionId: string): Promise<boolean> {
    const select = 'SELECT 1 FROM shop_ledger WHERE transaction_id = $1';
    return (await this.pool.query(select, [transactionId])).rows.length > 0;
  }

  async entries(): Promise<LedgerEntry[]> {
    const select = `SELECT ${ENTRY} FROM shop_ledger ORDER BY seq`;
    return (await this.pool.query<LedgerRow>(select)).rows.map(toEntry);
  }

  async page(limit: number, before?: string): Promise<LedgerPage> {
    const { rows } = await this.pool.query<LedgerRow & { seq: string }>(
      `SELECT seq, ${ENTRY} FROM shop_ledger WHERE seq < coalesce($2::bigint, ${LAST})
       ORDER BY seq DESC LIMIT $1`,
      [limit + 1, before ?? null],
    );
    return toPage(rows, limit);
  }

  async totals(): Promise<LedgerTotals> {
    const { rows } = await this.pool.query<TotalRow>(
      `SELECT unmatched, count(*)::int AS payments,
              sum(round(amount::numeric * 100))::double precision AS cents
       FROM shop_ledger GROUP BY unmatched`,
    );
    return toTotals(rows);
  }

  /** Several of the last: numbers are given out before the commits, which may come in another order. */
  async version(): Promise<string> {
    const { rows } = await this.pool.query<{ seq: string }>(
      'SELECT seq FROM shop_ledger ORDER BY seq DESC LIMIT 20',
    );
    return rows.map(({ seq }) => seq).join();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
