import { SigningKey } from './signing-key.js';

/**
 * One company's credentials at the payments service. The service gives each company its own (sections 1 and
 * 5 of the service's page), and sandbox and production each their own again.
 */
export interface Company {
  /**
   * The name the application knows the company by: 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. It is the
   * last segment of the company's webhook path and part of every stored row, so it must not change.
   */
  id: string;
  /** Client id of the token endpoint (section 5.1). Not empty. */
  clientId: string;
  /** Client secret of the token endpoint (section 5.1). Not empty. */
  clientSecret: string;
  /**
   * Secret that signs this company's deliveries (section 6), or several, current first: all are accepted, so
   * that a secret is rotated without losing a delivery. 1 to 10 secrets, none empty.
   */
  webhookSecret: string | readonly string[];
  /** Address of the service for this company. Default: the module's `baseUrl`. */
  baseUrl?: string;
}

/**
 * Finds a company in the application's own database. Answers are cached (60 s; `undefined` 5 s), so that
 * strangers' requests can't reach the database at will.
 *
 * @example
 * ```ts
 * const directory: CompanyDirectory = {
 *   find: async (id) => (await merchants.findOneBy({ id }))?.payments,
 * };
 * ```
 */
export interface CompanyDirectory {
  /**
   * The company of that id, or `undefined` (or `null`, as some ORMs say) where there is none. Any other failure
   * should throw: the delivery is then answered 503 and sent again, not refused. The error's name and message
   * are logged.
   */
  find(id: string): Promise<Company | null | undefined> | Company | null | undefined;
}

/** The id of the one company of an application that names none. */
export const DEFAULT_COMPANY = 'default';

/**
 * A company, complete and validated. Its secrets are private fields behind getters, so that neither
 * `JSON.stringify` nor `util.inspect` shows them.
 */
export class ResolvedCompany {
  readonly #clientId: string;
  readonly #clientSecret: string;
  readonly #signingKeys: readonly SigningKey[];

  constructor(
    readonly id: string,
    /** Address of the service, without a trailing slash. */
    readonly baseUrl: string,
    secrets: { clientId: string; clientSecret: string; webhookSecrets: readonly string[] },
  ) {
    this.#clientId = secrets.clientId;
    this.#clientSecret = secrets.clientSecret;
    this.#signingKeys = Object.freeze(
      secrets.webhookSecrets.map((secret) => new SigningKey(secret)),
    );
    Object.freeze(this);
  }

  get clientId(): string {
    return this.#clientId;
  }

  get clientSecret(): string {
    return this.#clientSecret;
  }

  /** Every accepted webhook secret, current first, to sign with. */
  get signingKeys(): readonly SigningKey[] {
    return this.#signingKeys;
  }
}
