import { Logger } from '@nestjs/common';
import { PaymentsError } from '../payments.errors.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { resolveCompany } from './company.options.js';
import type { CompanyDefaults } from './company.options.js';
import { DEFAULT_COMPANY } from './company.js';
import type { Company, CompanyDirectory, ResolvedCompany } from './company.js';

/** Finds a company by its id. */
export interface Companies {
  /**
   * The company, or `undefined` where there is none of that id.
   *
   * @throws PaymentsError `directory_unavailable` where the application's directory could not answer.
   */
  find(id: string): Promise<ResolvedCompany | undefined>;

  /** The company, where it is known without asking anybody; {@link find} may know more. */
  known(id: string): ResolvedCompany | undefined;
}

/** Nest injection token of the {@link Companies} in use. */
export const COMPANIES = Symbol('PAYMENTS_COMPANIES');

/** Companies named in the options. Where there is only one, it answers to `default` too. */
export class ListedCompanies implements Companies {
  readonly #byId: ReadonlyMap<string, ResolvedCompany>;

  constructor(companies: readonly ResolvedCompany[]) {
    const byId = new Map(companies.map((company) => [company.id, company]));
    if (companies.length === 1) byId.set(DEFAULT_COMPANY, companies[0]!);
    this.#byId = byId;
  }

  async find(id: string): Promise<ResolvedCompany | undefined> {
    return this.known(id);
  }

  known(id: string): ResolvedCompany | undefined {
    return this.#byId.get(id);
  }
}

const FOUND_MS = 60_000;
const NOT_FOUND_MS = 5000;
const MAX_FOUND = 10_000;
const MAX_UNPROVEN = 1000;

type Answer = Promise<ResolvedCompany | undefined>;

interface Entry {
  readonly answer: Answer;
  /** On the monotonic clock; never, while the directory is being asked. */
  readonly expiresAt: number;
  /** What it answered, where it has and that was a company. */
  readonly company?: ResolvedCompany;
}

/**
 * Companies looked up in the application's own directory. "Found" is kept for a minute, "none" for five
 * seconds; callers who ask meanwhile share one look-up. Both caches are bounded, and they are two, so that
 * strangers who make up ids push no real company out.
 */
export class DirectoryCompanies implements Companies {
  readonly #found = new Map<string, Entry>();
  /** Look-ups under way, and ids the directory does not know. */
  readonly #unproven = new Map<string, Entry>();

  readonly #logger = new Logger('PaymentCompanies');
  // Out of sight of JSON.stringify and util.inspect: the application's directory may well hold secrets.
  readonly #directory: CompanyDirectory;

  constructor(
    directory: CompanyDirectory,
    private readonly defaults: CompanyDefaults,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#directory = directory;
  }

  async find(id: string): Answer {
    const known = this.#found.get(id) ?? this.#unproven.get(id);
    if (known !== undefined && known.expiresAt > this.runtime.monotonic()) return known.answer;
    const answer = this.#lookUp(id);
    keep(this.#unproven, id, { answer, expiresAt: Infinity }, MAX_UNPROVEN);
    this.#found.delete(id);
    try {
      const company = await answer;
      this.#unproven.delete(id);
      const expiresAt = this.runtime.monotonic() + (company ? FOUND_MS : NOT_FOUND_MS);
      if (company) keep(this.#found, id, { answer, expiresAt, company }, MAX_FOUND);
      else keep(this.#unproven, id, { answer, expiresAt }, MAX_UNPROVEN);
      return company;
    } catch (error) {
      // A failure is no answer: the next caller asks again.
      this.#unproven.delete(id);
      throw error;
    }
  }

  known(id: string): ResolvedCompany | undefined {
    const found = this.#found.get(id);
    return found && found.expiresAt > this.runtime.monotonic() ? found.company : undefined;
  }

  async #lookUp(id: string): Answer {
    try {
      const company = await this.#directory.find(id);
      if (!company) return undefined;
      const { clientId, clientSecret, webhookSecret, baseUrl } = company;
      // Whatever the directory calls it, the id it was asked for is what rows and tokens go by.
      const named: Company = { id, clientId, clientSecret, webhookSecret };
      return resolveCompany(baseUrl === undefined ? named : { ...named, baseUrl }, this.defaults);
    } catch (error) {
      const cause = error instanceof Error ? `${error.name}: ${error.message}` : 'no Error';
      this.#logger.error(
        `The company directory gave no usable answer for company ${id}, so it is asked again next time. It ` +
          `threw ${cause}`,
      );
      throw new PaymentsError(
        'directory_unavailable',
        `The company directory gave no usable answer for company ${id}; the log says why.`,
      );
    }
  }
}

/** Adds an entry as the newest, and drops the oldest where there are too many. */
function keep(cache: Map<string, Entry>, id: string, entry: Entry, max: number): void {
  cache.delete(id);
  cache.set(id, entry);
  if (cache.size > max) cache.delete(cache.keys().next().value!);
}
