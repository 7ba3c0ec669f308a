import { Inject, Injectable } from '@nestjs/common';
import { COMPANIES } from '../companies/companies.js';
import type { Companies } from '../companies/companies.js';
import { DEFAULT_COMPANY, isCompanyId } from '../companies/company.js';
import { optionsInvalid } from '../errors/payments-error.js';
import { isReference, POLL_HANDLER } from '../inbox/store/expectation-store.js';
import type {
  ExpectationCounts,
  ExpectationPage,
  StoredExpectation,
} from '../inbox/store/expectation-store.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { InboxStore } from '../inbox/store/inbox-store.js';
import { InboxWorker } from '../inbox/work/inbox-worker.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { isTransactionId } from './ask-service.js';
import type {
  ExpectationKey,
  ExpectationQuery,
  ExpectOptions,
  ExpectTransaction,
  SweepQuery,
  SweepResult,
} from './expectation-arguments.js';
import { assertPollSchedule, firstPollInMs } from './poll-schedule.js';
import { RECONCILE_OPTIONS } from './reconcile-options.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** Expectations per call of the store in {@link PaymentExpectations.sweep}. */
const PAGE = 500;

/**
 * Expected payments. A webhook request may never arrive, and the service sends none for a declined payment, so the module
 * asks the service about the payments that the application expects, until an event of the payment was received or the
 * expectation is overdue. An event that a poll finds is stored, de-duplicated and handled like one of a webhook request.
 *
 * @example
 * ```ts
 * await expectations.expect({ reference: order.id, dueBy });
 * const transactionId = await this.requestPayment(order);
 * await expectations.attach(order.id, { transactionId });
 * ```
 */
@Injectable()
export class PaymentExpectations {
  constructor(
    @Inject(RECONCILE_OPTIONS) private readonly options: ResolvedReconcileOptions | null,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(COMPANIES) private readonly companies: Companies,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly worker: InboxWorker,
  ) {}

  /** Whether the module has the option `reconcile`, so that expectations can be stored and polled. */
  get enabled(): boolean {
    return this.options !== null;
  }

  /**
   * Stores an expectation, in the inbox's database. Call it before the request to the service, so that no crash between
   * the two loses the payment. Returns `false`, and changes nothing, if the company has an expectation with the
   * reference already.
   *
   * @throws TypeError for a value out of bounds, if there is neither a reference nor a transaction id, or if the inbox
   *   cannot use `tx`. PaymentsError `options_invalid` without the option `reconcile`, `inbox_full`.
   */
  async expect(payment: ExpectOptions, { tx }: ExpectTransaction = {}): Promise<boolean> {
    const options = this.#reconcile('expect');
    const { transactionId = null, dueBy = null, schedule = options.schedule } = payment;
    const reference = payment.reference ?? transactionId;
    if (reference === null) {
      throw new TypeError(
        'expect() needs a "reference" or a "transactionId": without them, no event can be found for the payment.',
      );
    }
    if (transactionId !== null) assertTransactionId(transactionId);
    if (dueBy !== null) assertDate('dueBy', dueBy);
    assertPollSchedule(schedule, '"schedule"');
    const key = this.#key({ ...payment, reference });
    const times = { schedule: [...schedule], dueBy, createdAt: new Date(this.runtime.now()) };
    const firstMs = firstPollInMs(times, this.runtime.random());
    const { createdAt: _, ...stated } = times;
    const expectation = { ...key, ...stated, transactionId, firstPollInMs: firstMs };
    const stored = await this.store.expectations.expect(expectation, tx);
    // If the transaction is rolled back, this claim finds nothing.
    if (stored) this.worker.wakeIn(firstMs);
    return stored;
  }

  /**
   * Adds the transaction id to an expectation, once the service has returned it. Idempotent. Resolves with `attached`;
   * with `conflict` if the expectation has another id, which it keeps; with `unknown` if there is no such expectation.
   *
   * @throws TypeError for a value out of bounds, or if the inbox cannot use `tx`.
   */
  async attach(
    reference: string,
    { transactionId, company }: { readonly transactionId: string; readonly company?: string },
    { tx }: ExpectTransaction = {},
  ): Promise<'attached' | 'conflict' | 'unknown'> {
    assertTransactionId(transactionId);
    const key = this.#key({ reference, ...(company !== undefined && { company }) });
    return this.store.expectations.attach(key.company, reference, transactionId, tx);
  }

  /**
   * Ends a waiting or overdue expectation, for example because the customer cancelled: it is not polled any more. An
   * event of the payment is still handled. Returns whether it ended the expectation.
   *
   * @throws TypeError for a value out of bounds.
   */
  async cancel(reference: string, key: Omit<ExpectationKey, 'reference'> = {}): Promise<boolean> {
    const { company } = this.#key({ ...key, reference });
    return this.store.expectations.cancel(company, reference);
  }

  /**
   * The expectation with that reference; `undefined` if there is none.
   *
   * @throws TypeError for a value out of bounds.
   */
  async get(
    reference: string,
    key: Omit<ExpectationKey, 'reference'> = {},
  ): Promise<StoredExpectation | undefined> {
    const { company } = this.#key({ ...key, reference });
    return this.store.expectations.find(company, reference);
  }

  /**
   * A page of expectations, the newest first.
   *
   * @throws TypeError if `limit` is out of bounds.
   */
  async list(query: ExpectationQuery = {}): Promise<ExpectationPage> {
    const { limit = 50, after = null, ...filter } = query;
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new TypeError('"limit" must be a whole number of expectations from 1 to 1,000.');
    }
    const { company } = filter;
    const own = company !== undefined && { company: this.#ownId(company) };
    return this.store.expectations.list({ filter: { ...filter, ...own }, limit, after });
  }

  /** How many expectations are waiting or overdue, each exact up to 10,000. Cheap enough for every scrape of metrics. */
  async counts(): Promise<ExpectationCounts> {
    return this.store.expectations.counts();
  }

  /**
   * Polls expectations now, in any state but `cancelled`. Returns how many polls it made due; a poll that is running
   * already does not count. It resolves before the polls have ended, and polls above `reconcile.maxPollsPerSecond` start
   * later. In a test, `settled()` waits for the polls that are due.
   *
   * @throws TypeError for a value out of bounds. PaymentsError `options_invalid` without the option `reconcile`.
   */
  async askNow(selection: ExpectationKey | readonly ExpectationKey[]): Promise<number> {
    this.#reconcile('askNow');
    const keys = (Array.isArray(selection) ? selection : [selection]) as readonly ExpectationKey[];
    const named = keys.map((key) => this.#key(key));
    return this.#pollNow(named, Array<number>(named.length).fill(0));
  }

  /**
   * Polls every waiting or overdue expectation that was created between `from` and `to`, for example after an outage.
   * The polls of each company start at `reconcile.maxPollsPerSecond`.
   *
   * @throws TypeError for a value out of bounds. PaymentsError `options_invalid` without the option `reconcile`.
   * @example
   * ```ts
   * const { expectations: open } = await expectations.sweep({ from, to, dryRun: true });
   * await expectations.sweep({ from, to });
   * ```
   */
  async sweep({ from, to, company, dryRun = false }: SweepQuery): Promise<SweepResult> {
    const spacingMs = 1000 / this.#reconcile('sweep').maxPollsPerSecond;
    assertDate('from', from);
    assertDate('to', to);
    const result = { expectations: 0, polls: 0 };
    const seen = new Map<string, number>();
    for (const state of ['overdue', 'waiting'] as const) {
      const filter = { state, from, to, ...(company !== undefined && { company }) };
      let after: string | null = null;
      do {
        const page: ExpectationPage = await this.list({ ...filter, limit: PAGE, after });
        const dueInMs = page.expectations.map((one) => {
          const before = seen.get(one.company) ?? 0;
          seen.set(one.company, before + 1);
          return Math.round(before * spacingMs);
        });
        result.expectations += page.expectations.length;
        if (!dryRun) result.polls += await this.#pollNow(page.expectations, dueInMs);
        after = page.next;
      } while (after !== null);
    }
    return result;
  }

  async #pollNow(
    keys: readonly { readonly company: string; readonly reference: string }[],
    dueInMs: readonly number[],
  ): Promise<number> {
    if (keys.length === 0) return 0;
    const selections = keys.map(({ company, reference }) => ({ company, reference }));
    const count = await this.store.expectations.pollNow(selections, dueInMs);
    this.worker.wake([POLL_HANDLER]);
    return count;
  }

  /** @throws TypeError if the reference or the company is out of bounds. */
  #key({ reference, company = DEFAULT_COMPANY }: ExpectationKey): Required<ExpectationKey> {
    if (!isReference(reference)) {
      throw new TypeError(
        'The reference of an expected payment must be a string of 1 to 200 characters without control characters.',
      );
    }
    if (!isCompanyId(company)) {
      throw new TypeError('"company" must be 1 to 100 characters of A-Z a-z 0-9 . _ ~ -.');
    }
    return { reference, company: this.#ownId(company) };
  }

  /** The id that events of the company are stored under. For `default`, the id of the application's only company. */
  #ownId(company: string): string {
    return this.companies.known(company)?.id ?? company;
  }

  /** @throws PaymentsError `options_invalid` without the option `reconcile`. */
  #reconcile(method: string): ResolvedReconcileOptions {
    if (this.options !== null) return this.options;
    throw optionsInvalid(
      `PaymentExpectations.${method}() needs the option "reconcile", which says how to read a transaction of the ` +
        "service. Set it, for example: reconcile: { interpret: byStatus({ complete: 'transaction.completed' }) }.",
    );
  }
}

function assertTransactionId(value: unknown): void {
  if (isTransactionId(value)) return;
  throw new TypeError(
    '"transactionId" must be a string of 1 to 255 characters without control characters.',
  );
}

function assertDate(name: string, value: unknown): void {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return;
  throw new TypeError(`"${name}" must be a valid Date.`);
}
