import { randomBytes } from 'node:crypto';
import { DEFAULT_COMPANY } from './company.js';
import type { ResolvedCompany } from './company.js';

/** Finds a company by its id. */
export interface Companies {
  /**
   * Returns the company for a call of the application itself, or `undefined` if there is none with this id. The
   * rate of these lookups is not limited.
   *
   * @throws PaymentsError `directory_unavailable` if the application's directory cannot answer, and
   *   `company_unknown` if it answers a company with another id.
   */
  find(id: string): Promise<ResolvedCompany | undefined>;

  /**
   * Returns the company for a delivery whose signature is not verified yet, or `undefined` if there is none with
   * this id.
   *
   * @param arrivedAt when the delivery arrived, on the monotonic clock; its deadline counts from then
   * @throws PaymentsError `directory_unavailable` if the application's directory cannot answer before the
   *   delivery's deadline, or if unverified deliveries need too many lookups.
   */
  findForDelivery(id: string, arrivedAt: number): Promise<ResolvedCompany | undefined>;

  /** Returns the company if that needs no lookup; {@link find} may know more. */
  known(id: string): ResolvedCompany | undefined;

  /** Reports that a delivery for this company had a valid signature. */
  verified(id: string): void;
}

/** Nest injection token of the {@link Companies} in use. */
export const COMPANIES = Symbol('PAYMENTS_COMPANIES');

/** Companies named in the options. If there is only one, its id and `default` both find it. */
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

  async findForDelivery(id: string): Promise<ResolvedCompany | undefined> {
    return this.known(id);
  }

  known(id: string): ResolvedCompany | undefined {
    return this.#byId.get(id);
  }

  verified(): void {}
}

/**
 * Finds companies that have a webhook secret in common: a delivery of one would be accepted as the other's. It
 * holds no secret, only a signature that each of them gives for a random text of this instance.
 */
export class SharedSecrets {
  readonly #text = randomBytes(32);
  /** The id of the first company that has the secret, by its digest. */
  readonly #owners = new Map<string, string>();

  /** Adds a company. Returns the id of another that has one of its secrets, if there is one. */
  add(company: ResolvedCompany): string | undefined {
    let shared: string | undefined;
    for (const digest of this.#digests(company)) {
      const owner = this.#owners.get(digest) ?? company.id;
      this.#owners.set(digest, owner);
      if (owner !== company.id) shared = owner;
    }
    return shared;
  }

  remove(company: ResolvedCompany): void {
    for (const digest of this.#digests(company)) {
      if (this.#owners.get(digest) === company.id) this.#owners.delete(digest);
    }
  }

  #digests({ signingKeys }: ResolvedCompany): string[] {
    return signingKeys.map((key) => key.sign(this.#text).toString('base64', 0, 16));
  }
}
