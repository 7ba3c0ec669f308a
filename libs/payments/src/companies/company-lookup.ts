import type { ThrottledLog } from '../errors/throttled-log.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { isCompanyId, resolveCompany } from './resolve-company.js';
import type { CompanyDefaults } from './resolve-company.js';
import type { Company, CompanyDirectory, ResolvedCompany } from './company.js';

/** Asks the application's directory, and checks what it answers. */
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
   * @throws PaymentsError `company_unknown` if the directory answers a company with another id, and
   *   `directory_unavailable` if it throws, takes longer than the limit, or answers no usable company.
   */
  async run(id: string): Promise<ResolvedCompany | undefined> {
    let answered: unknown;
    try {
      const late = () => new Error(`no answer within ${this.limitMs} ms`);
      const company = await withTimeLimit(this.#find(id), this.limitMs, this.runtime, late);
      if (company === undefined || company === null) return undefined;
      if (typeof company !== 'object')
        throw new TypeError('it answered something else than a company');
      answered = company.id;
      if (answered === id) return this.#resolve(id, company);
    } catch (error) {
      this.log.error('failure', () => noUsableAnswer(id, error));
      throw new PaymentsError(
        'directory_unavailable',
        `The company directory gave no usable answer for company ${id}; the log says why.`,
      );
    }
    throw this.#anotherId(id, answered);
  }

  async #find(id: string): Promise<Company | null | undefined> {
    return this.#directory.find(id);
  }

  #resolve(id: string, company: Company): ResolvedCompany {
    // Field by field: the fields of an ORM's entity may be getters, which a spread does not copy.
    const { clientId, clientSecret, webhookSecret, baseUrl } = company;
    const named: Company = { id, clientId, clientSecret, webhookSecret };
    return resolveCompany(baseUrl === undefined ? named : { ...named, baseUrl }, this.defaults);
  }

  #anotherId(id: string, answered: unknown): PaymentsError {
    const other = isCompanyId(answered) ? `with the id "${answered}"` : 'without a valid "id"';
    const message =
      `The company directory was asked for company "${id}" and answered a company ${other}. Return a company only ` +
      'if its "id" is exactly the one asked for: a lookup that ignores case finds one company under several ids.';
    this.log.warn('id', `${message} Its deliveries are answered 401 (company_unknown).`);
    return new PaymentsError('company_unknown', message);
  }
}

function noUsableAnswer(id: string, error: unknown): string {
  return (
    `The company directory gave no usable answer for company ${id}. Deliveries for it are answered 503 ` +
    `(directory_unavailable), and the directory is asked again after a second: ${describeError(error)}`
  );
}

/** Ids that are remembered: about 10 MB. */
const MAX_VERIFIED = 100_000;

/**
 * Limits the lookups that anybody can cause by sending deliveries to invented ids: at most `perSecond` per second,
 * and as many at the same time. An id that a valid signature was seen for is exempt; the ids used least recently
 * lose this first.
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
   * Starts a lookup for a delivery that is not verified yet.
   *
   * @throws PaymentsError `directory_unavailable` if the budget is spent.
   */
  spend<T>(id: string, lookUp: () => Promise<T>): Promise<T> {
    if (this.#verified.has(id)) return lookUp();
    if (this.#underWay >= this.perSecond || !this.#rate.take()) {
      this.log.warn('budget', () => tooMany(this.perSecond));
      throw new PaymentsError(
        'directory_unavailable',
        'Too many companies are being looked up. Send the delivery again.',
      );
    }
    this.#underWay += 1;
    const end = () => void (this.#underWay -= 1);
    const answer = lookUp();
    answer.then(end, end);
    return answer;
  }

  /** Exempts an id: a delivery for it had a valid signature. */
  exempt(id: string): void {
    this.#verified.delete(id);
    this.#verified.add(id);
    const [oldest] = this.#verified;
    if (this.#verified.size > MAX_VERIFIED) this.#verified.delete(oldest!);
  }

  /** Ends the exemption of an id: there is no such company any more. */
  revoke(id: string): void {
    this.#verified.delete(id);
  }
}

function tooMany(perSecond: number): string {
  return (
    `Deliveries without a verified signature need more than ${perSecond} company lookups per second. Those above the ` +
    'limit are answered 503 (directory_unavailable). If strangers send them, reject their requests in ' +
    '"webhook.before"; if they are real companies, raise "webhook.maxLookupsPerSecond".'
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
