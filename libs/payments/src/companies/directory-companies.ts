import { Logger } from '@nestjs/common';
import { ThrottledLog } from '../errors/throttled-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { SharedSecrets } from './companies.js';
import type { Companies } from './companies.js';
import { CompanyLookup, LookupBudget } from './company-lookup.js';
import type { CompanyDefaults } from './resolve-company.js';
import type { CompanyDirectory, ResolvedCompany } from './company.js';

const FOUND_MS = 60_000;
const UNKNOWN_MS = 5000;
const FAILED_MS = 1000;
const MAX_FOUND = 10_000;
const MAX_OTHERS = 1000;

type Answer = Promise<ResolvedCompany | undefined>;

interface Entry {
  readonly answer: Answer;
  /** On the monotonic clock; infinite while the lookup is under way. */
  readonly expiresAt: number;
}

interface FoundEntry extends Entry {
  readonly company: ResolvedCompany;
}

/** Bounds of the lookups in the application's directory. */
export interface LookupLimits {
  /** Lookups per second, and at the same time, for ids that no valid signature was seen for. */
  readonly maxLookupsPerSecond: number;
  /** Milliseconds that a lookup may take, and from a delivery's arrival until it is refused. */
  readonly deadlineMs: number;
}

/**
 * Companies looked up in the application's own directory. A company is cached for 60 s (at most 10,000 of them),
 * "none" for 5 s and a failure for 1 s. Callers who ask for the same id at the same time share one lookup.
 * Companies have a cache of their own, so that invented ids never displace a real company.
 */
export class DirectoryCompanies implements Companies {
  readonly #found = new Map<string, FoundEntry>();
  /** Lookups under way, ids without a company, and failures. */
  readonly #others = new Map<string, Entry>();
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
    this.#log = new ThrottledLog(new Logger('PaymentCompanies'), runtime);
    this.#lookup = new CompanyLookup(directory, defaults, limits.deadlineMs, runtime, this.#log);
    this.#budget = new LookupBudget(limits.maxLookupsPerSecond, runtime, this.#log);
  }

  async find(id: string): Answer {
    return this.#cached(id) ?? this.#ask(id);
  }

  async findForDelivery(id: string, arrivedAt: number): Answer {
    const answer = this.#cached(id) ?? this.#budget.spend(id, () => this.#ask(id));
    const leftMs = arrivedAt + this.limits.deadlineMs - this.runtime.monotonic();
    try {
      return await withTimeLimit(answer, leftMs, this.runtime, tooLate);
    } catch (error) {
      // What the directory answered instead is for the application's own calls, not for a sender.
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

  #cached(id: string): Answer | undefined {
    const entry = this.#found.get(id) ?? this.#others.get(id);
    return entry && entry.expiresAt > this.runtime.monotonic() ? entry.answer : undefined;
  }

  #ask(id: string): Answer {
    const answer = this.#lookup.run(id);
    this.#keepOther(id, answer, Infinity);
    answer.then(
      (company) => (company ? this.#keepFound(company, answer) : this.#keepUnknown(id, answer)),
      (error: unknown) =>
        isUnknown(error) ? this.#keepUnknown(id, answer) : this.#keepOther(id, answer, FAILED_MS),
    );
    return answer;
  }

  #keepFound(company: ResolvedCompany, answer: Answer): void {
    const { id } = company;
    this.#others.delete(id);
    const expiresAt = this.runtime.monotonic() + FOUND_MS;
    const displaced = keep(this.#found, id, { answer, expiresAt, company }, MAX_FOUND);
    if (displaced !== undefined) this.#secrets.remove(displaced.company);
    const other = this.#secrets.add(company);
    if (other === undefined) return;
    this.#log.warn(
      'secrets',
      `The company directory answers one webhook secret for the companies "${other}" and "${id}", so a delivery for ` +
        "one is also accepted as the other's. Give each company the secret that the payments service gave it.",
    );
  }

  #keepUnknown(id: string, answer: Answer): void {
    this.#budget.revoke(id);
    this.#keepOther(id, answer, UNKNOWN_MS);
  }

  #keepOther(id: string, answer: Answer, forMs: number): void {
    const found = this.#found.get(id);
    this.#found.delete(id);
    if (found !== undefined) this.#secrets.remove(found.company);
    const expiresAt = this.runtime.monotonic() + forMs;
    keep(this.#others, id, { answer, expiresAt }, MAX_OTHERS);
  }
}

/** Adds an entry as the newest. Returns the oldest if it had to go. */
function keep<E>(cache: Map<string, E>, id: string, entry: E, max: number): E | undefined {
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
    'The company directory did not answer before the deadline of the delivery.',
  );
}

function isUnknown(error: unknown): boolean {
  return error instanceof PaymentsError && error.code === 'company_unknown';
}
