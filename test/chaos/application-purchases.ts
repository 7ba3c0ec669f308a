import { DatabaseSync } from 'node:sqlite';
import { Controller, Inject, Injectable, Param, Post } from '@nestjs/common';
import { PaymentExpectations, PaymentsApiService, PaymentsError } from 'nestjs-payments';
import type { PaymentTransaction, Interpretation, ReconcileOptions } from 'nestjs-payments';
import type { Pool } from 'pg';
import { SETUP } from './application-handlers.js';
import type { ApplicationSetup } from './application-protocol.js';
import { OVERDUE_PREFIX, OVERDUE_SCHEDULE, SCHEDULE } from './payment-plan.js';

const PATH = '/chaos/payments';
const INSERT = 'INSERT INTO purchase (reference) VALUES';

/** Returns the meaning of a transaction. */
export function interpret({ status, ...data }: PaymentTransaction): Interpretation {
  if (status === 'complete') return { eventType: 'transaction.completed', data };
  return status === 'declined' ? { eventType: 'transaction.declined', data } : 'pending';
}

/** The options with which the application polls the payments service. */
export const RECONCILE: ReconcileOptions = {
  eventTypes: ['transaction.completed', 'transaction.declined'],
  interpret: (transaction) => Purchases.interpret(transaction),
  find: async (externalReference, api, options) => {
    const { transactions } = await api.get<{ transactions: { transactionId: string }[] }>(PATH, {
      ...options,
      query: { externalReference },
    });
    return transactions[0]?.transactionId;
  },
  schedule: SCHEDULE,
  maxPollsPerSecond: 100,
  concurrency: 20,
};

/** Stores purchases, and requests their payments: expect, request, attach. */
@Injectable()
export class Purchases {
  /** A static method, so that tests can replace it. */
  static interpret = interpret;
  #sqlite: DatabaseSync | undefined;
  #pool: Promise<Pool> | undefined;
  #lastTransaction: Promise<unknown> = Promise.resolve();

  constructor(
    @Inject(SETUP) private readonly setup: ApplicationSetup,
    @Inject(PaymentExpectations) private readonly expectations: PaymentExpectations,
    @Inject(PaymentsApiService) private readonly payments: PaymentsApiService,
  ) {}

  /**
   * Idempotent. A second call with a stored reference sends no request, because the first request may have taken
   * effect.
   */
  async create(reference: string): Promise<void> {
    const isNew = await this.store(reference);
    if (isNew) await this.request(reference);
  }

  /** Stores the purchase and its expectation in one transaction. Returns `false` if the purchase is stored already. */
  protected store(reference: string): Promise<boolean> {
    const stored = this.#lastTransaction.then(() =>
      this.setup.store === 'sqlite' ? this.#inSqlite(reference) : this.#inPostgres(reference),
    );
    this.#lastTransaction = stored.catch(() => {});
    return stored;
  }

  /** Requests the payment once. If the outcome is unknown, the polls of its expectation find the transaction. */
  protected async request(reference: string): Promise<void> {
    try {
      const { transactionId } = await this.payments.post<{ transactionId: string }>(PATH, {
        body: { externalReference: reference },
      });
      await this.expectations.attach(reference, { transactionId });
    } catch (error) {
      if (!(error instanceof PaymentsError)) throw error;
    }
  }

  protected async expect(reference: string, tx: unknown): Promise<void> {
    const schedule = reference.startsWith(OVERDUE_PREFIX) ? OVERDUE_SCHEDULE : SCHEDULE;
    await this.expectations.expect({ reference, schedule }, { tx });
  }

  async #inSqlite(reference: string): Promise<boolean> {
    this.#sqlite ??= new DatabaseSync(this.setup.database);
    this.#sqlite.exec('PRAGMA busy_timeout = 2000; BEGIN IMMEDIATE');
    try {
      const { changes } = this.#sqlite
        .prepare(`${INSERT} (?) ON CONFLICT DO NOTHING`)
        .run(reference);
      if (changes === 1) await this.expect(reference, this.#sqlite);
      this.#sqlite.exec('COMMIT');
      return changes === 1;
    } catch (error) {
      this.#sqlite.exec('ROLLBACK');
      throw error;
    }
  }

  async #inPostgres(reference: string): Promise<boolean> {
    this.#pool ??= this.#openPool();
    const client = await (await this.#pool).connect();
    let failed = true;
    try {
      await client.query('BEGIN');
      const insert = `${INSERT} ($1) ON CONFLICT DO NOTHING`;
      const { rowCount } = await client.query(insert, [reference]);
      if (rowCount === 1) await this.expect(reference, client);
      await client.query('COMMIT');
      failed = false;
      return rowCount === 1;
    } finally {
      client.release(failed);
    }
  }

  async #openPool(): Promise<Pool> {
    const { Pool } = await import('pg');
    const pool = new Pool({
      connectionString: this.setup.database,
      max: 2,
      connectionTimeoutMillis: 2000,
      query_timeout: 3000,
    });
    // The next query uses another connection.
    pool.on('error', () => {});
    // A connection was lost while a transaction used it, or before its promise resolved. The next statement fails.
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  }
}

/** `POST /purchases/:reference`. */
@Controller('purchases')
export class PurchasesController {
  constructor(@Inject(Purchases) private readonly purchases: Purchases) {}

  @Post(':reference')
  create(@Param('reference') reference: string): Promise<void> {
    return this.purchases.create(reference);
  }
}
