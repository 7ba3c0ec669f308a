import { Logger } from '@nestjs/common';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresTransaction } from 'nestjs-payments/postgres';
import { Pool } from 'pg';
import type { LedgerEntry, LedgerPage, LedgerTotals, Payment } from '../ledger/ledger-entry.js';
import type { CreateOrderDto, Order, OrderProblem, OrderWithPayments } from '../orders/order.js';
import { MAX_SEQ, toLedgerEntry, toLedgerPage, toLedgerTotals } from './ledger-rows.js';
import type { LedgerRow, LedgerTotalsRow } from './ledger-rows.js';
import { ShopDatabase } from './shop-database.js';

/**
 * The statements that create the tables. The pool sends the statements as one message, which PostgreSQL runs as one
 * transaction. The first statement takes a lock, so that several shops that start at the same time create the tables
 * one after the other. Without the lock, a shop could fail in spite of IF NOT EXISTS.
 *
 * Amounts are stored as doubles, as they arrive in JSON. Sums are calculated in whole cents.
 */
const TABLES = `
  SELECT pg_advisory_xact_lock(hashtext('shop tables'));
  CREATE TABLE IF NOT EXISTS shop_order (
    reference    text PRIMARY KEY,
    amount       double precision NOT NULL,
    checkout_url text,
    problem      text
  );
  CREATE TABLE IF NOT EXISTS shop_ledger (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction_id text NOT NULL UNIQUE,
    reference      text,
    amount         double precision NOT NULL,
    recorded_at    timestamptz NOT NULL DEFAULT now(),
    unmatched      boolean NOT NULL,
    found_by_poll  boolean NOT NULL
  );
  CREATE INDEX IF NOT EXISTS shop_ledger_reference ON shop_ledger (reference)`;

const ORDER = 'reference, amount, checkout_url AS "checkoutUrl", problem';
const ENTRY =
  'transaction_id AS "transactionId", reference, amount, recorded_at AS "recordedAt", unmatched, found_by_poll AS "foundByPoll"';

/** The orders, the ledger and the inbox in one PostgreSQL database, which any number of shops can share. */
export class PostgresShopDatabase extends ShopDatabase<PostgresTransaction> {
  readonly inbox;

  private constructor(
    connectionString: string,
    private readonly pool: Pool,
  ) {
    super();
    // The inbox has its own pool, so that neither pool waits for the connections of the other pool.
    this.inbox = postgresInbox({ connectionString });
  }

  /** Connects to the database, and creates missing tables. @throws the error of `pg` if one of these steps fails. */
  static async open(connectionString: string): Promise<PostgresShopDatabase> {
    const pool = new Pool({
      connectionString,
      max: 5,
      connectionTimeoutMillis: 5000,
      query_timeout: 10_000,
      allowExitOnIdle: true,
    });
    // If an idle connection is lost, the next statement uses another connection. Without this listener, the error would
    // end the process.
    const logger = new Logger(PostgresShopDatabase.name);
    pool.on('error', ({ message }) =>
      logger.warn(`An idle connection to PostgreSQL was lost: ${message}`),
    );
    // If a connection is lost while a transaction uses it, the next statement fails. Without this listener, the error
    // would end the process.
    pool.on('connect', (client) => client.on('error', () => {}));
    try {
      await pool.query(TABLES);
      return new PostgresShopDatabase(connectionString, pool);
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  async addOrder(
    { reference, amount }: CreateOrderDto,
    expectPayment: (tx: unknown) => Promise<unknown>,
  ): Promise<Order> {
    const client = await this.pool.connect();
    let failure: unknown;
    try {
      await client.query('BEGIN');
      const insert = 'INSERT INTO shop_order VALUES ($1, $2) ON CONFLICT DO NOTHING';
      const { rowCount } = await client.query(insert, [reference, amount]);
      if (rowCount === 1) await expectPayment(client);
      await client.query('COMMIT');
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      // PostgreSQL rolls an open transaction back when its connection is closed.
      client.release(failure !== undefined);
    }
    const select = `SELECT ${ORDER} FROM shop_order WHERE reference = $1`;
    return (await this.pool.query<Order>(select, [reference])).rows[0]!;
  }

  async findOrders(references: readonly string[]): Promise<OrderWithPayments[]> {
    const { rows } = await this.pool.query<OrderWithPayments>(
      `SELECT ${ORDER}, ARRAY(
         SELECT l.amount FROM shop_ledger l
         WHERE l.reference = o.reference AND NOT l.unmatched ORDER BY l.seq
       ) AS payments, EXISTS(
         SELECT 1 FROM shop_ledger l
         WHERE l.reference = o.reference AND NOT l.unmatched AND l.found_by_poll
       ) AS "foundByPoll"
       FROM shop_order o WHERE reference = ANY($1)`,
      [references],
    );
    return rows;
  }

  async setProblem(
    tx: PostgresTransaction,
    reference: string,
    problem: OrderProblem,
  ): Promise<void> {
    await tx.query(
      "UPDATE shop_order SET problem = $1 WHERE reference = $2 AND problem IS DISTINCT FROM 'declined'",
      [problem, reference],
    );
  }

  async setCheckoutUrl(reference: string, checkoutUrl: string): Promise<void> {
    await this.pool.query(
      'UPDATE shop_order SET checkout_url = $1 WHERE reference = $2 AND checkout_url IS NULL',
      [checkoutUrl, reference],
    );
  }

  async recordPayment(
    tx: PostgresTransaction,
    { transactionId, reference, amount, foundByPoll }: Payment,
  ): Promise<LedgerEntry | null> {
    const { rows } = await tx.query<LedgerRow>(
      `INSERT INTO shop_ledger (transaction_id, reference, amount, found_by_poll, unmatched)
       VALUES ($1, $2, $3, $4, NOT EXISTS (SELECT 1 FROM shop_order WHERE reference = $2))
       ON CONFLICT (transaction_id) DO NOTHING RETURNING ${ENTRY}`,
      [transactionId, reference, amount, foundByPoll],
    );
    return rows[0] === undefined ? null : toLedgerEntry(rows[0]);
  }

  async isRecorded(transactionId: string): Promise<boolean> {
    const select = 'SELECT 1 FROM shop_ledger WHERE transaction_id = $1';
    return (await this.pool.query(select, [transactionId])).rows.length > 0;
  }

  async ledgerEntries(): Promise<LedgerEntry[]> {
    const select = `SELECT ${ENTRY} FROM shop_ledger ORDER BY seq`;
    return (await this.pool.query<LedgerRow>(select)).rows.map(toLedgerEntry);
  }

  async ledgerPage(limit: number, before?: string): Promise<LedgerPage> {
    const { rows } = await this.pool.query<LedgerRow & { seq: string }>(
      `SELECT seq, ${ENTRY} FROM shop_ledger WHERE seq < coalesce($2::bigint, ${MAX_SEQ})
       ORDER BY seq DESC LIMIT $1`,
      [limit + 1, before ?? null],
    );
    return toLedgerPage(rows, limit);
  }

  async ledgerTotals(): Promise<LedgerTotals> {
    const { rows } = await this.pool.query<LedgerTotalsRow>(
      `SELECT unmatched, count(*)::int AS payments,
              sum(round(amount::numeric * 100))::double precision AS cents
       FROM shop_ledger GROUP BY unmatched`,
    );
    return toLedgerTotals(rows);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
