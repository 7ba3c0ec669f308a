import { LogLine } from '../errors/module-log.js';
import type { ThrottledLog } from '../errors/module-log.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { isCompanyId, resolveCompany } from './company.js';
import type { CompanyDefaults, Company, CompanyDirectory, ResolvedCompany } from './company.js';

/** Looks up companies in the application's directory, and validates what it returns. */
export class CompanyLookup {
  // Private, so that JSON.stringify and util.inspect do not show it: the directory may hold secrets.
  readonly #directory: CompanyDirectory;

  constructor(
    directory: CompanyDirectory,
    private readonly defaults: CompanyDefaults,
    private readonly limitMs: number,
    private readonly runtime: PaymentsRuntime,
    private readonly log: ThrottledLog,
  ) {
    this.#directory = directory;
  }

  /**
   * Returns the company with this id, or `undefined` if the directory has none.
   *
   * @throws PaymentsError `company_unknown` if the directory returns a company with another id;
   *   `directory_unavailable` if it throws, takes longer than the limit, or returns an invalid company.
   */
  async find(id: string): Promise<ResolvedCompany | undefined> {
    let returnedId: unknown;
    try {
      const late = () => new Error(`no result within ${this.limitMs} ms`);
      const company = await withTimeLimit(this.#find(id), this.limitMs, this.runtime, late);
      if (company === undefined || company === null) return undefined;
      if (typeof company !== 'object')
        throw new TypeError('it returned something else than a company');
      returnedId = company.id;
      if (returnedId === id) return this.#resolve(id, company);
    } catch (error) {
      this.log.error('failure', () => lookupFailed(id, error));
      throw new PaymentsError(
        'directory_unavailable',
        `The company directory failed for company ${id}; the log contains the cause.`,
      );
    }
    throw this.#otherCompany(id, returnedId);
  }

  /** Returns a rejected promise, and does not throw, if the directory throws. */
  async #find(id: string): Promise<Company | null | undefined> {
    return this.#directory.find(id);
  }

  #resolve(id: string, company: Company): ResolvedCompany {
    // Field by field: the fields of an ORM entity may be getters, which a spread does not copy.
    const { clientId, clientSecret, webhookSecret, baseUrl } = company;
    const fields: Company = { id, clientId, clientSecret, webhookSecret };
    return resolveCompany(baseUrl === undefined ? fields : { ...fields, baseUrl }, this.defaults);
  }

  #otherCompany(id: string, returnedId: unknown): PaymentsError {
    const other = isCompanyId(returnedId) ? `with the id "${returnedId}"` : 'without a valid "id"';
    const message =
      `For the id "${id}", the company directory returned a company ${other}. Return a company only if its "id" is ` +
      'exactly the id that was passed in: a lookup that ignores case finds one company under several ids.';
    const line = `${message} The response to its webhook requests is 401 (company_unknown).`;
    this.log.warn('id', new LogLine(line, { company: id }));
    return new PaymentsError('company_unknown', message);
  }
}

function lookupFailed(id: string, error: unknown): LogLine {
  return new LogLine(
    `The company directory failed for company ${id}. The response to its webhook requests is 503 ` +
      `(directory_unavailable), and the next lookup is after a second: ${describeError(error)}`,
    { company: id },
  );
}

/** Maximum number of ids in {@link LookupBudget}: about 10 MB. */
const MAX_VERIFIED = 100_000;

/**
 * Limits the lookups that anybody can cause by sending webhook requests for invented ids: at most `perSecond` lookups
 * per second, and at most `perSecond` at the same time. Ids that had a valid signature are exempt. Of these, the 100,000
 * that were used last are remembered.
 */
export class LookupBudget {
  readonly #rate: RateLimit;
  readonly #verified = new Set<string>();
  #underWay = 0;

  constructor(
    private readonly perSecond: number,
    runtime: Pick<PaymentsRuntime, 'monotonic'>,
    private readonly log: ThrottledLog,
  ) {
    this.#rate = new RateLimit(perSecond, runtime);
  }

  /**
   * Starts a lookup for a webhook request whose signature is not verified yet.
   *
   * @throws PaymentsError `directory_unavailable` if there are too many lookups.
   */
  start<T>(id: string, lookUp: () => Promise<T>): Promise<T> {
    if (this.#verified.has(id)) return lookUp();
    if (this.#underWay >= this.perSecond || !this.#rate.take()) {
      this.log.warn('budget', () => tooManyLookups(this.perSecond));
      throw new PaymentsError(
        'directory_unavailable',
        'Too many companies are being looked up. Send the event again.',
      );
    }
    this.#underWay += 1;
    const end = () => void (this.#underWay -= 1);
    const company = lookUp();
    company.then(end, end);
    return company;
  }

  /** Exempts an id, because a webhook request for it had a valid signature. */
  exempt(id: string): void {
    this.#verified.delete(id);
    this.#verified.add(id);
    const [oldest] = this.#verified;
    if (this.#verified.size > MAX_VERIFIED) this.#verified.delete(oldest!);
  }

  /** Ends the exemption of an id, because its company does not exist any more. */
  revoke(id: string): void {
    this.#verified.delete(id);
  }
}

function tooManyLookups(perSecond: number): string {
  return (
    `Webhook requests without a verified signature need more than ${perSecond} company lookups per second. The response ` +
    'to requests above this limit is 503 (directory_unavailable). If strangers send them, reject them in ' +
    '"webhook.before"; if they are for real companies, raise "webhook.maxLookupsPerSecond".'
  );
}

const SECOND_MS = 1000;

/** Gives at most `perSecond` permits within any period of one second, on the monotonic clock. */
export class RateLimit {
  /** A ring buffer of the times when the latest permits were taken. `#next` is the index of the oldest. */
  readonly #taken: Float64Array;
  #next = 0;

  constructor(
    perSecond: number,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic'>,
  ) {
    this.#taken = new Float64Array(perSecond).fill(-Infinity);
  }

  /** Takes a permit. Returns `false` if there is none now. */
  take(): boolean {
    const now = this.runtime.monotonic();
    if (now - this.#taken[this.#next]! < SECOND_MS) return false;
    this.#taken[this.#next] = now;
    this.#next = (this.#next + 1) % this.#taken.length;
    return true;
  }
}
