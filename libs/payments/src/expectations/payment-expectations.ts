import { Inject, Injectable } from '@nestjs/common';
import { PaymentsApiError } from '../api/api-error.js';
import { PaymentsApiService } from '../api/payments-api.service.js';
import type { PaymentsApi } from '../api/payments-api.service.js';
import { COMPANIES, DEFAULT_COMPANY, isCompanyId } from '../companies/company.js';
import type { Companies } from '../companies/company.js';
import { ModuleLogger } from '../errors/module-log.js';
import { optionsInvalid } from '../errors/option-checks.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { isKey } from '../events/payment-event.js';
import { isReference } from '../inbox/receive/event-receiver.js';
import type {
  ExpectationCounts,
  ExpectationFilter,
  ExpectationPage,
  ExpectationState,
  RequestState,
  StoredExpectation,
} from '../inbox/store/expectation-store.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { InboxStore } from '../inbox/store/inbox-store.js';
import {
  assertDate,
  assertText,
  assertTimes,
  assertWhole,
  MAX_NOTE,
} from '../inbox/store/stored-event.js';
import { retryUntil, withTimeLimit } from '../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { firstPollInMs, isPollSchedule, POLL_SCHEDULE } from './poll-schedule.js';
import { Poller } from './poller.js';
import { RECONCILE_OPTIONS } from './reconcile-options.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** How long {@link PaymentExpectations.request} may take until its outcome counts as unknown, in milliseconds. */
const REQUEST_MS = 60_000;
/** Time limit of `reconcile.find` before a request, in milliseconds. */
const FIND_MS = 20_000;
/**
 * The latest time at which {@link PaymentExpectations.request} may begin its request to the service, in milliseconds
 * after the method was called. After this time, the method sends nothing, because the rest of {@link REQUEST_MS} is
 * reserved for the response.
 */
const BEGIN_MS = 30_000;
/** How long {@link PaymentExpectations.request} tries to store the transaction id while the store is down, in milliseconds. */
const ATTACH_MS = 10_000;
/** Number of expectations that {@link PaymentExpectations.sweep} reads from the store at a time. */
const PAGE = 500;

/** A payment that the application expects; see `PaymentExpectations.expect()`. */
export interface ExpectOptions {
  /**
   * The application's reference of the payment, unique within the company: 1 to 200 characters, without control
   * characters. An event whose `data.externalReference` is this reference fulfils the expectation, so use the reference
   * that you give the service. Default: `transactionId`.
   */
  readonly reference?: string;
  /** The service's id of the transaction, 1 to 255 characters, if it is known yet; see `PaymentExpectations.attach()`. */
  readonly transactionId?: string;
  /**
   * When the expectation becomes overdue, after one last poll. Later polls of the schedule are not made. Default: after
   * the last poll of the schedule.
   */
  readonly dueBy?: Date;
  /** Id of the company. Default: the application's only company, or `default`. */
  readonly company?: string;
  /** Delays of the polls after the creation, in milliseconds. Bounds and default: those of `reconcile.schedule`. */
  readonly schedule?: readonly number[];
}

/** The result of `PaymentExpectations.request()`. */
export type RequestedPayment<R> =
  | {
      /** This call requested the payment. */
      readonly requested: true;
      /** The id that `attach` returned; `null` if it returned none. */
      readonly transactionId: string | null;
      /**
       * Whether the id was attached to the expectation. `false` if there is no id, or if the id could not be attached,
       * for example because the application has cancelled the expectation meanwhile. If the id could not be attached,
       * the reason is logged as an error. Without an attached id, the module can find the transaction only by the
       * reference, with `reconcile.find`.
       */
      readonly attached: boolean;
      /** What the callback returned. */
      readonly response: R;
    }
  | {
      /** An earlier or concurrent call requested the payment, so this call sent nothing. */
      readonly requested: false;
      /**
       * The attached transaction id; `null` if it is not known, because the other call is still running, or because its
       * response had no id and `reconcile.find` finds none.
       */
      readonly transactionId: string | null;
      readonly response?: undefined;
      /** The state of the expectation: `fulfilled` if the payment has an event already. */
      readonly state: ExpectationState;
      /** Whether another call is sending the request now. Call `request()` again later to learn its outcome. */
      readonly running: boolean;
    };

/** Identifies one expectation. */
export interface ExpectationKey {
  readonly reference: string;
  /** Default: the application's only company, or `default`. */
  readonly company?: string;
}

/**
 * Manages expected payments. A webhook request may never arrive, and the service sends no webhook request for a
 * declined payment, so the module polls the service about each payment that the application expects. The polls end when
 * an event of the payment was received or the expectation is overdue. An event that a poll finds is stored,
 * de-duplicated and handled like the event of a webhook request.
 *
 * @example
 * ```ts
 * const { transactionId } = await this.expectations.request(
 *   { reference: order.id, dueBy },
 *   (api) => api.post<Invoice>(path, { body: { amount: order.total, externalReference: order.id } }),
 *   { attach: (invoice) => invoice.transactionId },
 * );
 * ```
 */
@Injectable()
export class PaymentExpectations {
  readonly #logger = new ModuleLogger('PaymentExpectations');

  constructor(
    @Inject(RECONCILE_OPTIONS) private readonly options: ResolvedReconcileOptions | null,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(COMPANIES) private readonly companies: Companies,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly api: PaymentsApiService,
    private readonly poller: Poller,
  ) {}

  /** Whether the module has the option `reconcile`, so that expectations can be stored and polled. */
  get enabled(): boolean {
    return this.options !== null;
  }

  /**
   * Requests a payment. A crash or an error does not lose the payment, and a second click does not request the payment
   * again. Stores the expectation, calls `send`, and attaches the transaction id that `attach` reads from the response.
   * After any error, and for a second click, call the method again with the same reference: the new call sends a
   * request only if no earlier request is still running or was accepted.
   *
   * The expectation stays stored if the payment may exist, so that a poll or a webhook request can fulfil it. The
   * expectation is cancelled only if this call created it and the error is one of {@link NOT_REQUESTED_CODES}. If the
   * outcome of an earlier request is unknown, `reconcile.find` decides: the transaction that it finds is attached; if
   * it finds no transaction, the request is sent again. Without the option `find`, the request is sent again only if
   * `repeatable` is `true`.
   *
   * If the transaction id cannot be stored within 10 s after a successful request, an error is logged. The result then
   * contains the id and `attached: false`: call {@link attach} with this id later.
   *
   * @param payment the expected payment; give the service the same `reference`
   * @param send requests the payment; its argument is the API of the company. The function should end within 60 s,
   *   because a second call treats the outcome of a longer request as unknown.
   * @throws what `send` and `attach` throw, and what `reconcile.find` throws. PaymentsError `outcome_unknown` if an
   *   earlier request has an unknown outcome and may not be repeated. Also throws what {@link expect} throws.
   */
  async request<R>(
    payment: Omit<ExpectOptions, 'transactionId'> & { readonly reference: string },
    send: (api: PaymentsApi) => Promise<R>,
    {
      attach,
      repeatable = false,
    }: {
      /** Returns the id of the transaction from the response; `null` or `undefined` if the response has none. */
      readonly attach: (response: R) => string | null | undefined;
      /**
       * Whether a request whose outcome is unknown may be sent again, because the service creates one payment for all
       * requests with the same reference or idempotency key. The contract of the service does not show whether the
       * service creates only one payment. Therefore, the default is `false`: a request with an unknown outcome is sent
       * again only if `reconcile.find` finds no transaction.
       */
      readonly repeatable?: boolean;
    },
  ): Promise<RequestedPayment<R>> {
    this.#reconcile('request');
    const key = this.#key(payment);
    const { company, reference } = key;
    const created = await this.expect(payment);
    const startedAt = this.runtime.monotonic();
    const started = await this.store.expectations.startRequest(company, reference, REQUEST_MS);
    if (started === undefined) {
      throw new PaymentsError(
        'inbox_unavailable',
        `The expectation ${reference} was deleted during this call.`,
      );
    }
    const { expectation, previous, token } = started;
    const { transactionId: known, state } = expectation;
    const changes = trackChanges(this.api.forCompany(company));
    const { api } = changes;
    if (token === null) {
      // The response of the accepted request had no id.
      const isOpen = state === 'waiting' || state === 'overdue';
      const isMissing = previous === 'accepted' && known === null && isOpen;
      const found = isMissing ? await this.#find(reference, previous, api, repeatable) : null;
      if (found !== null) await this.#attach(key, found);
      const running = previous === 'running';
      return { requested: false, transactionId: known ?? found, state, running };
    }
    const end = (to: Exclude<RequestState, 'running'> | 'cancelled') =>
      this.store.expectations.endRequest(key, token, to);
    if (previous === 'unknown' || previous === 'answered') {
      const found = await this.#find(reference, previous, api, repeatable).catch(
        async (error: unknown) => {
          await end(previous).catch(() => {});
          throw error;
        },
      );
      if (found !== null) {
        await this.#attach(key, found);
        return { requested: false, transactionId: found, state, running: false };
      }
    }
    if (this.runtime.monotonic() - startedAt > BEGIN_MS) {
      await end(previous === 'running' ? 'unknown' : previous).catch(() => {});
      throw new PaymentsError(
        'lease_lost',
        `The request for the payment ${reference} could not begin within ${BEGIN_MS / 1000} s. The ` +
          'module did not send the request, because another call may send it now. Call request() again.',
      );
    }
    let response: R;
    try {
      response = await send(api);
    } catch (error) {
      const effect = changes.effectAfter(error, previous);
      // If the store is down, the outcome of the request becomes unknown when the lease of the request ends.
      await end(effect === 'never' && created ? 'cancelled' : effect).catch(() => {});
      throw error;
    }
    let transactionId: string | null;
    try {
      transactionId = attach(response) ?? null;
      if (transactionId !== null) assertTransactionId(transactionId, 'The result of "attach"');
    } catch (error) {
      await end('accepted').catch(() => {});
      throw error;
    }
    const attached = transactionId !== null && (await this.#attach(key, transactionId));
    if (!attached) await end('accepted').catch(() => {});
    return { requested: true, transactionId, attached, response };
  }

  /**
   * Stores an expectation in the inbox's database. Call this method before the request to the service, so that a crash
   * between the two calls does not lose the payment. {@link request} makes both calls. A cancelled expectation with the
   * reference is opened again, as a new expectation. Returns `false`, and changes nothing, if the company has an
   * expectation with the reference in another state.
   *
   * The inbox stores ended expectations and the ids of events for `worker.retainIdsMs`. If you expect a payment again
   * more than `worker.retainIdsMs` after it was handled, the module polls, finds and handles the payment again.
   * Therefore, check the application's own tables first.
   *
   * @throws TypeError for a value out of bounds, if there is neither a reference nor a transaction id, or if the inbox
   *   cannot use `tx`. PaymentsError `options_invalid` without the option `reconcile`; `inbox_full` if the inbox is
   *   full.
   */
  async expect(
    payment: ExpectOptions,
    {
      tx,
    }: {
      /**
       * The application's open transaction, in which the module stores the expectation. PostgreSQL: an object with
       * `query(text, values)`, such as a client of `pg` or an `EntityManager` of TypeORM. SQLite: an object with
       * `prepare(sql)` on the file of the inbox, such as the transaction of `context.commit`, a `DatabaseSync` of
       * `node:sqlite`, or a `Database` of better-sqlite3. The memory inbox has no transactions. Default: the module
       * uses a separate transaction.
       */
      readonly tx?: unknown;
    } = {},
  ): Promise<boolean> {
    const options = this.#reconcile('expect');
    const { transactionId = null, dueBy, schedule = options.schedule } = payment;
    const reference = payment.reference ?? transactionId;
    if (reference === null) {
      throw new TypeError(
        'expect() needs a "reference" or a "transactionId": without them, no event can be found for the payment.',
      );
    }
    if (transactionId !== null) assertTransactionId(transactionId);
    if (dueBy !== undefined) assertDate('dueBy', dueBy);
    if (!isPollSchedule(schedule)) throw new TypeError(`"schedule" must be ${POLL_SCHEDULE}.`);
    const key = this.#key({ ...payment, reference });
    // The store gets a duration, because its clock and the clock of the application may differ.
    const dueInMs = dueBy === undefined ? null : Math.round(dueBy.getTime() - this.runtime.now());
    const times = { schedule: [...schedule], dueInMs };
    const firstMs = firstPollInMs(times, this.runtime.random());
    const expectation = { ...key, ...times, transactionId, firstPollInMs: firstMs };
    const stored = await this.store.expectations.expect(expectation, tx);
    // If the transaction is rolled back, the poller finds nothing to claim.
    if (stored) this.poller.wakeIn(firstMs);
    return stored;
  }

  /**
   * Adds the transaction id that the service returned to an expectation. Idempotent. From then on, only an event of
   * this transaction fulfils the expectation. Resolves with
   *
   * - `attached` if the expectation has the id now;
   * - `conflict` if the expectation already has another id, which does not change, or if another expectation of the
   *   company has this id;
   * - `cancelled` if the expectation is cancelled and therefore not polled: call {@link expect} with the id if the
   *   payment exists;
   * - `unknown` if there is no such expectation.
   *
   * @throws TypeError for a value out of bounds.
   */
  async attach(
    reference: string,
    { transactionId, company }: { readonly transactionId: string; readonly company?: string },
  ): Promise<'attached' | 'conflict' | 'cancelled' | 'unknown'> {
    assertTransactionId(transactionId);
    const key = this.#key({ reference, ...(company !== undefined && { company }) });
    const attached = await this.store.expectations.attach(key.company, reference, transactionId);
    // The poll of an overdue expectation is due now.
    this.poller.wake();
    return attached;
  }

  /**
   * Cancels a waiting or overdue expectation, for example because the customer cancelled the order. The module then
   * stops polling the payment, and counts and alerts do not include the expectation. An event of the payment is still
   * handled. Returns whether this call cancelled the expectation.
   *
   * @throws TypeError for a value out of bounds.
   */
  async cancel(
    reference: string,
    {
      by = null,
      note = null,
      ...key
    }: Omit<ExpectationKey, 'reference'> & {
      /** The person who cancels the expectation, 1 to 100 characters. Default: the application. */
      readonly by?: string | null;
      /** The reason, which `StoredExpectation.cancelled` and the console show, 1 to 500 characters. Default: none. */
      readonly note?: string | null;
    } = {},
  ): Promise<boolean> {
    const { company } = this.#key({ ...key, reference });
    if (by !== null) assertText('by', by, 100);
    if (note !== null) assertText('note', note, MAX_NOTE);
    return this.store.expectations.cancel(company, reference, { by, note });
  }

  /**
   * Returns the expectation with this reference; `undefined` if there is none.
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
   * Returns a page of expectations, the newest first. One call compares at most 20,000 expectations with the filter, so
   * a page can have fewer than `limit` expectations although there are more pages. On the last page, `next` is `null`.
   *
   * @param query `limit`: expectations on a page, 1 to 1,000, 50 by default. `after`: `next` of the previous page.
   * @throws TypeError if `limit`, `after`, `from` or `to` is invalid.
   */
  async list(
    query: ExpectationFilter & { readonly limit?: number; readonly after?: string | null } = {},
  ): Promise<ExpectationPage> {
    const { limit = 50, after = null, ...filter } = query;
    assertWhole('limit', limit, { max: 1000, unit: 'expectations' });
    assertTimes(query);
    const { company } = filter;
    const own = company !== undefined && { company: this.#ownId(company) };
    return this.store.expectations.list({ filter: { ...filter, ...own }, limit, after });
  }

  /**
   * Returns how many expectations are open. Each count is exact up to 10,000. The call is cheap enough for every scrape
   * of metrics.
   */
  async counts(): Promise<ExpectationCounts> {
    return this.store.expectations.counts();
  }

  /**
   * Polls expectations now, in any state except `cancelled`. Returns how many polls this call made due, without polls
   * that were already running. The call resolves before the polls have ended, and polls above
   * `reconcile.maxPollsPerSecond` start later. In a test, `settled()` waits for the polls that are due.
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
   * These polls do not become due all at once: for each company, the option `reconcile.maxPollsPerSecond` is the number
   * of polls that become due in a second. Returns two numbers:
   * `expectations` is the number of these expectations, and `polls` is the number of polls that became due. An
   * expectation whose poll is running already does not count in `polls`. In a dry run, `polls` is 0.
   *
   * @throws TypeError for a value out of bounds. PaymentsError `options_invalid` without the option `reconcile`.
   * @example
   * ```ts
   * const { expectations: open } = await expectations.sweep({ from, to, dryRun: true });
   * await expectations.sweep({ from, to });
   * ```
   */
  async sweep({
    from,
    to,
    company,
    dryRun = false,
  }: {
    /** Created at this time or later. */
    readonly from: Date;
    /** Created before this time. */
    readonly to: Date;
    /** Default: all companies. */
    readonly company?: string;
    /** Whether the call only counts the expectations and makes no poll due. Default `false`. */
    readonly dryRun?: boolean;
  }): Promise<{ readonly expectations: number; readonly polls: number }> {
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
    this.poller.wake();
    return count;
  }

  /** Returns the id of the transaction that an earlier request created; `null` if the request may be sent again. */
  async #find(
    reference: string,
    previous: RequestState,
    api: PaymentsApi,
    repeatable: boolean,
  ): Promise<string | null> {
    const { find } = this.#reconcile('request');
    if (typeof find === 'function') {
      const late = new AbortController();
      const work = (async (): Promise<unknown> => find(reference, api, { signal: late.signal }))();
      const found = await withTimeLimit(work, FIND_MS, this.runtime, () => {
        const timeUp = new PaymentsError(
          'outcome_unknown',
          `"reconcile.find" took longer than ${FIND_MS / 1000} s for the payment ${reference}. This call sent no request.`,
        );
        late.abort(timeUp);
        return timeUp;
      });
      if (found == null) return null;
      assertTransactionId(found, 'The result of "reconcile.find"');
      return found as string;
    }
    if (previous !== 'unknown' || repeatable) return null;
    throw new PaymentsError(
      'outcome_unknown',
      `An earlier request for the payment ${reference} was sent, and its outcome is unknown. The module ` +
        'does not repeat the request, because the payment may exist. Set "reconcile.find", which looks the payment up. ' +
        'If the service creates one payment for all requests with the same reference, you can pass "repeatable: true" ' +
        'instead. Or cancel the expectation, and use a new reference.',
    );
  }

  /**
   * Stores the transaction id. While the store is down, retries for 10 s. Returns whether the id was stored. If it was
   * not, logs the reason.
   */
  async #attach({ company, reference }: Required<ExpectationKey>, id: string): Promise<boolean> {
    const endsAt = this.runtime.monotonic() + ATTACH_MS;
    const failed = (reason: string): false => {
      const line = `The transaction id ${id} of the requested payment ${reference} (company ${company}) was not attached: ${reason}`;
      this.#logger.error(line, { company });
      return false;
    };
    const attach = async () => this.store.expectations.attach(company, reference, id);
    try {
      const attached = await retryUntil(endsAt, attach, this.runtime);
      // The poll of an overdue expectation is due now.
      this.poller.wake();
      return attached === 'attached' || failed(NOT_ATTACHED[attached]);
    } catch (error) {
      return failed(describeError(error));
    }
  }

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

  /**
   * Returns the id under which the events of the company are stored. For `default`, this is the id of the application's
   * only company.
   */
  #ownId(company: string): string {
    return this.companies.known(company)?.id ?? company;
  }

  #reconcile(method: string): ResolvedReconcileOptions {
    if (this.options !== null) return this.options;
    throw optionsInvalid(
      `PaymentExpectations.${method}() needs the option "reconcile", which says how to read a transaction of the ` +
        "service. Set it, for example: reconcile: { interpret: byStatus({ complete: 'transaction.completed' }) }.",
    );
  }
}

const NOT_ATTACHED = {
  conflict:
    'the expectation has another transaction id, or another expectation has this id. The response may belong to ' +
    'another payment. Look the transactions up at the service.',
  cancelled:
    'the application cancelled the expectation meanwhile. If the payment is still wanted, call expect() with this id.',
  unknown: 'the expectation was deleted.',
};

function assertTransactionId(value: unknown, name = '"transactionId"'): void {
  if (isKey(value)) return;
  throw new TypeError(
    `${name} must be a string of 1 to 255 characters without control characters.`,
  );
}

/**
 * The codes of the errors that prove that the service accepted no request, so that no payment exists. After any other
 * error of a request, the payment may exist. For example, the payment may exist after a 408, 409 or 429, after a
 * redirect, and after every other status that the contract of the service does not show.
 *
 * - `invalid_credentials`, `token_unavailable`: there was no token, so the request was not sent.
 * - `company_unknown`, `directory_unavailable`: the company has no credentials, or they could not be looked up, so the
 *   request was not sent.
 * - `connection_failed`, `timeout`, `aborted`: no byte of a request that changes something can have reached the service;
 *   otherwise the code is `outcome_unknown`.
 * - `authentication_failed`: the service rejected the token with 401, as its contract shows.
 */
export const NOT_REQUESTED_CODES: readonly PaymentsErrorCode[] = Object.freeze([
  'invalid_credentials',
  'token_unavailable',
  'company_unknown',
  'directory_unavailable',
  'connection_failed',
  'timeout',
  'aborted',
  'authentication_failed',
] as const);

/**
 * What is known about the effect of the calls that change something, from the best case to the worst. `never`: the
 * calls had no effect. `answered`: the service responded with a status 4xx, which does not prove that the calls had no
 * effect. `unknown`: anything else.
 */
const EFFECTS = ['never', 'answered', 'unknown'] as const;
type Effect = (typeof EFFECTS)[number];

function effectOf(error: unknown): Effect {
  if (error instanceof PaymentsError && NOT_REQUESTED_CODES.includes(error.code)) return 'never';
  const status = error instanceof PaymentsApiError ? error.status : undefined;
  // The service may have accepted a request before it responded with 408, a redirect or 5xx.
  const isAnswer = status !== undefined && status >= 400 && status <= 499 && status !== 408;
  return isAnswer ? 'answered' : 'unknown';
}

const CHANGING: readonly string[] = ['post', 'put', 'patch', 'delete', 'request'];

/**
 * Wraps an API to record the effects of calls that change something. A request for a payment can consist of several
 * calls, and only the last of them fails. `effectAfter(error, before)` returns what is known about the effect of all
 * calls after the last call failed with this error. `before` is what was known before the first of these calls. The
 * error alone is not enough, because it proves nothing about the earlier calls.
 */
function trackChanges(api: PaymentsApi): {
  readonly api: PaymentsApi;
  effectAfter(error: unknown, before: RequestState): Effect;
} {
  const effects: Effect[] = [];
  const tracked = new Proxy(api, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...call: unknown[]): Promise<unknown> => {
        const reads = name === 'request' && (call[0] === 'GET' || call[0] === 'HEAD');
        if (!CHANGING.includes(String(name)) || reads) return value.apply(target, call);
        // The effect stays unknown after a success, too, because the payment or a part of it then exists.
        const index = effects.push('unknown') - 1;
        try {
          return await value.apply(target, call);
        } catch (error) {
          effects[index] = effectOf(error);
          throw error;
        }
      };
    },
  });
  return {
    api: tracked,
    effectAfter: (error, before) => {
      const known: readonly RequestState[] = [before, ...effects, effectOf(error)];
      return EFFECTS.findLast((effect) => known.includes(effect)) ?? 'unknown';
    },
  };
}
