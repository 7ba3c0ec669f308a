import { randomBytes } from 'node:crypto';
import { DEFAULT_COMPANY } from './company.js';
import type { ResolvedCompany } from './company.js';

/** Finds a company by its id. */
export interface Companies {
  /**
   * Returns the company for a call that the application itself makes, or `undefined` if no company has this id. The rate
   * of these lookups is not limited.
   *
   * @throws PaymentsError `directory_unavailable` if the application's directory fails; `company_unknown` if it returns
   *   a company with another id.
   */
  find(id: string): Promise<ResolvedCompany | undefined>;

  /**
   * Returns the company for a webhook request whose signature is not verified yet, or `undefined` if no company has this
   * id.
   *
   * @param arrivedAt when the webhook request arrived, on the monotonic clock; its deadline counts from then
   * @throws PaymentsError `directory_unavailable` if the application's directory fails or does not respond before the
   *   deadline, or if unverified webhook requests need too many lookups.
   */
  findForWebhook(id: string, arrivedAt: number): Promise<ResolvedCompany | undefined>;

  /** Returns the company if no lookup is necessary. If it returns `undefined`, {@link find} may still find one. */
  known(id: string): ResolvedCompany | undefined;

  /** Must be called when a webhook request for this company had a valid signature. */
  verified(id: string): void;
}

/** Nest injection token of the {@link Companies} in use. */
export const COMPANIES = Symbol('PAYMENTS_COMPANIES');

/** The companies in the options. If there is only one, {@link find} returns it for its id and for `default`. */
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

  async findForWebhook(id: string): Promise<ResolvedCompany | undefined> {
    return this.known(id);
  }

  known(id: string): ResolvedCompany | undefined {
    return this.#byId.get(id);
  }

  verified(): void {}
}

/**
 * Finds companies that have the same webhook secret: an event of one would be accepted as the other's. It stores no
 * secret, only the signature of a random text under each secret. Each instance has its own text.
 */
export class SharedSecrets {
  readonly #text = randomBytes(32);
  /** Id of the first company with a secret, by the signature under that secret. */
  readonly #owners = new Map<string, string>();

  /** Adds a company. Returns the id of another company that has one of its secrets, or `undefined`. */
  add(company: ResolvedCompany): string | undefined {
    let shared: string | undefined;
    for (const signature of this.#signatures(company)) {
      const owner = this.#owners.get(signature) ?? company.id;
      this.#owners.set(signature, owner);
      if (owner !== company.id) shared = owner;
    }
    return shared;
  }

  /** Removes a company that was added. */
  remove(company: ResolvedCompany): void {
    for (const signature of this.#signatures(company)) {
      if (this.#owners.get(signature) === company.id) this.#owners.delete(signature);
    }
  }

  #signatures({ signingKeys }: ResolvedCompany): string[] {
    return signingKeys.map((key) => key.sign(this.#text).toString('base64', 0, 16));
  }
}
