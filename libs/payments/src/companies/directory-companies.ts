import { LogLine, ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { SharedSecrets } from './companies.js';
import type { Companies } from './companies.js';
import { CompanyLookup, LookupBudget } from './company-lookup.js';
import type { CompanyDefaults, CompanyDirectory, ResolvedCompany } from './company.js';

/** For how long results are cached: a company, no company (or one with another id), and a failure. */
const FOUND_MS = 60_000;
const NOT_FOUND_MS = 5000;
const FAILED_MS = 1000;

/** Maximum number of cached companies. */
const MAX_FOUND = 10_000;
/** Maximum number of ids without a cached company: unfinished lookups, ids that no company has, and failures. */
const MAX_OTHERS = 1000;

type LookupResult = Promise<ResolvedCompany | undefined>;

interface CacheEntry {
  readonly result: LookupResult;
  /** On the monotonic clock; infinite until the lookup has ended. */
  readonly expiresAt: number;
}

interface FoundEntry extends CacheEntry {
  readonly company: ResolvedCompany;
}

/** Limits of the lookups in the application's directory. */
export interface LookupLimits {
  /** Lookups per second, and at the same time, for ids that had no valid signature yet. */
  readonly maxLookupsPerSecond: number;
  /** Maximum duration of a lookup in milliseconds, and maximum time from the arrival of a webhook request to its end. */
  readonly deadlineMs: number;
}

/**
 * Companies from the application's own directory, with a cache: a company is cached for 60 s (at most 10,000 of them),
 * the absence of a company for 5 s, a failure for 1 s. Simultaneous calls for the same id share one lookup. Companies
 * have a separate cache, so that invented ids never displace a real company.
 */
export class DirectoryCompanies implements Companies {
  readonly #found = new Map<string, FoundEntry>();
  /** Unfinished lookups, ids that no company has, and failures. */
  readonly #others = new Map<string, CacheEntry>();
  readonly #log: ThrottledLog;
  readonly #lookup: CompanyLookup;
  readonly #budget: LookupBudget;
  readonly #secrets = new SharedSecrets();

  constructor(
    directory: CompanyDirectory,
    defaults: CompanyDefaults,
    private readonly limits: LookupLimits,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#log = new ThrottledLog(new ModuleLogger('PaymentCompanies'), runtime);
    this.#lookup = new CompanyLookup(directory, defaults, limits.deadlineMs, runtime, this.#log);
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
      // Only the application's own calls get the error: its message contains the id of another company.
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
    const result = this.#lookup.find(id);
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
      new LogLine(
        `The company directory returns the same webhook secret for the companies "${other}" and "${id}", so an event ` +
          "for one is also accepted as the other's. Give each company the secret that the payments service gave it.",
        { company: id },
      ),
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

/** Adds an entry as the newest. If there are more than `max` then, removes the oldest and returns it. */
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
