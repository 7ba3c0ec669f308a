import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { withTimeLimit } from '../runtime/deadline.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { isCompanyId, resolveCompany, SharedSecrets } from './company.js';
import type {
  Companies,
  Company,
  CompanyDefaults,
  CompanyDirectory,
  ResolvedCompany,
} from './company.js';

/** How long each kind of lookup result is cached, in milliseconds. A company with a wrong id counts as not found. */
const FOUND_MS = 60_000;
const NOT_FOUND_MS = 5000;
const FAILED_MS = 1000;

const MAX_FOUND = 10_000;
/**
 * Maximum number of cached ids without a company, because the lookup is still running, has found no company, or has
 * failed.
 */
const MAX_OTHERS = 1000;

type LookupResult = Promise<ResolvedCompany | undefined>;

interface CacheEntry {
  readonly result: LookupResult;
  /** When the entry expires, on the monotonic clock. Infinite until the lookup has ended. */
  readonly expiresAt: number;
}

interface FoundEntry extends CacheEntry {
  readonly company: ResolvedCompany;
}

export interface LookupLimits {
  /**
   * Maximum number of lookups per second, and of lookups at the same time, for ids that never had a webhook request
   * with a valid signature.
   */
  readonly maxLookupsPerSecond: number;
  /**
   * Time limit in milliseconds, both for each lookup and for the time from the arrival of a webhook request to the end
   * of its lookup.
   */
  readonly deadlineMs: number;
}

/**
 * Finds companies in the application's directory, and caches the results as the doc comment of {@link CompanyDirectory}
 * describes. Simultaneous calls for the same id share one lookup. Found companies have a separate cache, so that
 * invented ids never displace a real company.
 */
export class DirectoryCompanies implements Companies {
  readonly ids = [];
  readonly #found = new Map<string, FoundEntry>();
  readonly #others = new Map<string, CacheEntry>();
  // These fields may contain secrets. They are private, so that JSON.stringify and util.inspect do not show them.
  readonly #directory: CompanyDirectory;
  readonly #defaults: CompanyDefaults;
  readonly #log: ThrottledLog;
  readonly #budget: LookupBudget;
  readonly #secrets = new SharedSecrets();

  constructor(
    directory: CompanyDirectory,
    defaults: CompanyDefaults,
    private readonly limits: LookupLimits,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#directory = directory;
    this.#defaults = defaults;
    this.#log = new ThrottledLog(new ModuleLogger('PaymentCompanies'), runtime);
    this.#budget = new LookupBudget(limits.maxLookupsPerSecond, runtime, this.#log);
  }

  async find(id: string): LookupResult {
    return this.#cached(id) ?? this.#lookUp(id);
  }

  async findForWebhook(id: string, arrivedAt: number): LookupResult {
    const result = this.#cached(id) ?? this.#budget.start(id, () => this.#lookUp(id));
    const leftMs = arrivedAt + this.limits.deadlineMs - this.runtime.monotonic();
    try {
      return await withTimeLimit(result, leftMs, this.runtime, tooLate);
    } catch (error) {
      // The response to a webhook request must not contain this error, because the message contains the id of another
      // company.
      if (isUnknown(error)) return undefined;
      throw error;
    }
  }

  known(id: string): ResolvedCompany | undefined {
    const found = this.#found.get(id);
    return found && found.expiresAt > this.runtime.monotonic() ? found.company : undefined;
  }

  verified(id: string): void {
    this.#budget.exempt(id);
  }

  #cached(id: string): LookupResult | undefined {
    const entry = this.#found.get(id) ?? this.#others.get(id);
    return entry && entry.expiresAt > this.runtime.monotonic() ? entry.result : undefined;
  }

  #lookUp(id: string): LookupResult {
    const result = this.#ask(id);
    this.#cacheOther(id, result, Infinity);
    result.then(
      (company) => (company ? this.#cacheFound(company, result) : this.#cacheNotFound(id, result)),
      (error: unknown) =>
        isUnknown(error)
          ? this.#cacheNotFound(id, result)
          : this.#cacheOther(id, result, FAILED_MS),
    );
    return result;
  }

  /**
   * Returns the company that the directory has for this id, or `undefined` if it has none.
   *
   * @throws PaymentsError `company_unknown` if the directory returns a company with another id; `directory_unavailable`
   *   if the directory throws, takes longer than the limit, or returns an invalid company.
   */
  async #ask(id: string): LookupResult {
    let returnedId: unknown;
    try {
      const { deadlineMs } = this.limits;
      // The function is async, so that an exception of the directory becomes a rejection.
      const found = (async () => this.#directory.find(id))();
      const company = await withTimeLimit(found, deadlineMs, this.runtime);
      if (company === undefined || company === null) return undefined;
      if (typeof company !== 'object')
        throw new TypeError('it returned something other than a company');
      returnedId = company.id;
      if (returnedId === id) return this.#resolve(id, company);
    } catch (error) {
      const line = () =>
        `The company directory failed for company ${id}. For 1 s, the company is not looked up again, and ` +
        `the response to its webhook requests is 503 (directory_unavailable). ${describeError(error)}`;
      this.#log.error('failure', line, { company: id });
      throw new PaymentsError(
        'directory_unavailable',
        `The company directory failed for company ${id}; the log contains the cause.`,
      );
    }
    throw this.#otherCompany(id, returnedId);
  }

  #resolve(id: string, company: Company): ResolvedCompany {
    // The fields are read one by one, because those of an ORM entity may be getters, which a spread does not copy.
    const { clientId, clientSecret, webhookSecret, baseUrl } = company;
    const fields: Company = { id, clientId, clientSecret, webhookSecret };
    return resolveCompany(baseUrl === undefined ? fields : { ...fields, baseUrl }, this.#defaults);
  }

  #otherCompany(id: string, returnedId: unknown): PaymentsError {
    const other = isCompanyId(returnedId) ? `with the id "${returnedId}"` : 'without a valid "id"';
    const message =
      `For the id "${id}", the company directory returned a company ${other}. Return a company only if its "id" is ` +
      'exactly the id that was passed in: a lookup that ignores case finds one company under several ids.';
    const line = `${message} The response to its webhook requests is 401 (company_unknown).`;
    this.#log.warn('id', line, { company: id });
    return new PaymentsError('company_unknown', message);
  }

  #cacheFound(company: ResolvedCompany, result: LookupResult): void {
    const { id } = company;
    this.#others.delete(id);
    const expiresAt = this.runtime.monotonic() + FOUND_MS;
    const displaced = addNewest(this.#found, id, { result, expiresAt, company }, MAX_FOUND);
    if (displaced !== undefined) this.#secrets.remove(displaced.company);
    const other = this.#secrets.add(company);
    if (other === undefined) return;
    this.#log.warn(
      'secrets',
      `The company directory returns the same webhook secret for the companies "${other}" and "${id}", so an event ` +
        'for one company is also accepted for the other. Give each company the secret that the payments service gave it.',
      { company: id },
    );
  }

  #cacheNotFound(id: string, result: LookupResult): void {
    this.#budget.revoke(id);
    this.#cacheOther(id, result, NOT_FOUND_MS);
  }

  #cacheOther(id: string, result: LookupResult, forMs: number): void {
    const found = this.#found.get(id);
    this.#found.delete(id);
    if (found !== undefined) this.#secrets.remove(found.company);
    const expiresAt = this.runtime.monotonic() + forMs;
    addNewest(this.#others, id, { result, expiresAt }, MAX_OTHERS);
  }
}

/**
 * Adds the newest entry to a cache. If the cache then has more than `max` entries, removes and returns the oldest
 * entry.
 */
function addNewest<E>(cache: Map<string, E>, id: string, entry: E, max: number): E | undefined {
  cache.delete(id);
  cache.set(id, entry);
  if (cache.size <= max) return undefined;
  const [oldestId, oldest] = cache.entries().next().value!;
  cache.delete(oldestId);
  return oldest;
}

function tooLate(): PaymentsError {
  return new PaymentsError(
    'directory_unavailable',
    'The company directory did not respond before the deadline of the webhook request.',
  );
}

function isUnknown(error: unknown): boolean {
  return error instanceof PaymentsError && error.code === 'company_unknown';
}

/** Maximum number of ids in {@link LookupBudget}. The ids take about 10 MB of memory. */
const MAX_VERIFIED = 100_000;

/**
 * Limits the lookups that anybody can cause by sending webhook requests for invented ids: at most `perSecond` lookups
 * per second, and at most `perSecond` at the same time. Ids that had a webhook request with a valid signature are
 * exempt. The budget stores the 100,000 exempt ids that were used last.
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

  /** @throws PaymentsError `directory_unavailable` if there are too many lookups */
  start<T>(id: string, lookUp: () => Promise<T>): Promise<T> {
    if (this.#verified.has(id)) return lookUp();
    if (this.#underWay >= this.perSecond || !this.#rate.take()) {
      this.log.warn(
        'budget',
        `Webhook requests without a verified signature need more than ${this.perSecond} company lookups per second. The ` +
          'response to requests above this limit is 503 (directory_unavailable). If strangers send them, reject them in ' +
          '"webhook.before"; if they are for real companies, raise "webhook.maxLookupsPerSecond".',
      );
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

  exempt(id: string): void {
    this.#verified.delete(id);
    this.#verified.add(id);
    const [oldest] = this.#verified;
    if (this.#verified.size > MAX_VERIFIED) this.#verified.delete(oldest!);
  }

  /** Removes an id from the exempt ids. Call this method if the company does not exist any more. */
  revoke(id: string): void {
    this.#verified.delete(id);
  }
}

const SECOND_MS = 1000;

/** Gives at most `perSecond` permits within any period of one second, on the monotonic clock. */
export class RateLimit {
  /** A ring buffer of the times when the latest permits were taken. `#next` is the index of the oldest time. */
  readonly #taken: Float64Array;
  #next = 0;

  constructor(
    perSecond: number,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic'>,
  ) {
    this.#taken = new Float64Array(perSecond).fill(-Infinity);
  }

  take(): boolean {
    const now = this.runtime.monotonic();
    if (now - this.#taken[this.#next]! < SECOND_MS) return false;
    this.#taken[this.#next] = now;
    this.#next = (this.#next + 1) % this.#taken.length;
    return true;
  }
}
