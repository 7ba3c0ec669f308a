import type { ExpectationFilter, ExpectationState } from '../inbox/store/expectation-store.js';

/** A payment that the application expects; see `PaymentExpectations.expect()`. */
export interface ExpectOptions {
  /**
   * The application's reference of the payment, unique within the company: 1 to 200 characters, none of them a control
   * character. An event whose `data.externalReference` is this reference fulfils the expectation, so use the reference
   * that you give the service. Default: `transactionId`.
   */
  readonly reference?: string;
  /** The service's id of the transaction, 1 to 255 characters, if it is known yet; see `PaymentExpectations.attach()`. */
  readonly transactionId?: string;
  /**
   * When the expectation becomes overdue, after one last poll. Polls of the schedule that are later do not take place.
   * Default: after the last poll of the schedule.
   */
  readonly dueBy?: Date;
  /** Id of the company. Default: the application's only company, or `default`. */
  readonly company?: string;
  /** Delays of the polls, in milliseconds; bounds and default: `reconcile.schedule`. */
  readonly schedule?: readonly number[];
}

/** The open transaction of the application in which an expectation is stored. */
export interface ExpectTransaction {
  /**
   * PostgreSQL: an object with `query(text, values)`, such as a client of `pg` or an `EntityManager` of TypeORM. SQLite:
   * an object with `prepare(sql)` on the file of the inbox, such as the transaction of `context.commit`, a
   * `DatabaseSync` of `node:sqlite`, or a `Database` of better-sqlite3. The memory inbox has no transactions. Default:
   * a transaction of its own.
   */
  readonly tx?: unknown;
}

/** The payment that `PaymentExpectations.request()` requests. */
export interface PaymentRequest extends Omit<ExpectOptions, 'reference' | 'transactionId'> {
  /** See {@link ExpectOptions.reference}. Give the service the same reference. */
  readonly reference: string;
}

/** How `PaymentExpectations.request()` reads the response, and repeats a request. */
export interface PaymentRequestOptions<R> {
  /** Returns the id of the transaction from the response; `null` or `undefined` if the response has none. */
  readonly attach: (response: R) => string | null | undefined;
  /**
   * Whether a request whose outcome is unknown may be sent again, because the service creates one payment for all
   * requests with the same reference or idempotency key. The contract of the service does not show that, so the default
   * is `false`: such a request is sent again only if `reconcile.find` finds no transaction.
   */
  readonly repeatable?: boolean;
}

/** The result of `PaymentExpectations.request()`. */
export type RequestedPayment<R> =
  | {
      /** This call requested the payment. */
      readonly requested: true;
      /** The id that `attach` returned; `null` without one. */
      readonly transactionId: string | null;
      /** What the callback returned. */
      readonly response: R;
    }
  | {
      /** An earlier or concurrent call requested the payment, so this call sent nothing. */
      readonly requested: false;
      /**
       * The attached transaction id; `null` if it is not known: the other call is still under way, or its response had no
       * id and `reconcile.find` finds none.
       */
      readonly transactionId: string | null;
      readonly response?: undefined;
      /** The state of the expectation: `fulfilled` if the payment has an event already. */
      readonly state: ExpectationState;
    };

/** Identifies one expectation. */
export interface ExpectationKey {
  readonly reference: string;
  /** Default: the application's only company, or `default`. */
  readonly company?: string;
}

/** Which page of the expectations `PaymentExpectations.list()` returns. */
export interface ExpectationQuery extends ExpectationFilter {
  /** Expectations on a page, 1 to 1,000. Default 50. */
  readonly limit?: number;
  /** `next` of the previous page. Default: the first page. */
  readonly after?: string | null;
}

/** Which expectations `PaymentExpectations.sweep()` polls. */
export interface SweepQuery {
  /** Created at this time or later. */
  readonly from: Date;
  /** Created before this time. */
  readonly to: Date;
  /** Default: all companies. */
  readonly company?: string;
  /** Counts, and changes nothing. Default `false`. */
  readonly dryRun?: boolean;
}

/** The result of `PaymentExpectations.sweep()`. */
export interface SweepResult {
  /** Waiting and overdue expectations that were created between `from` and `to`. */
  readonly expectations: number;
  /** How many of them the sweep polls: all except those whose poll is running. 0 in a dry run. */
  readonly polls: number;
}
