import { SigningKey } from './signing-key.js';

/**
 * One company's credentials at the payments service. The service gives each company credentials of its own, and
 * different ones for sandbox and production.
 */
export interface Company {
  /**
   * The company's name in the application: 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. It is the last segment
   * of the company's webhook path and part of every stored row, so it must not change.
   */
  id: string;
  /** User name of the token request. Not empty, without white space or quotes around it. */
  clientId: string;
  /** Password of the token request. Not empty, without white space or quotes around it. */
  clientSecret: string;
  /**
   * Secret that signs this company's deliveries, or several, current first: all of them are accepted, so that a
   * rotation loses no delivery. 1 to 10 secrets, none empty, without white space or quotes around them.
   */
  webhookSecret: string | readonly string[];
  /** Address of the service for this company. Default: the module's `baseUrl`. */
  baseUrl?: string;
}

/**
 * Finds a company in the application's own database. Answers are cached (60 s; `undefined` 5 s), so that
 * requests of strangers do not each cause a query.
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
   * Returns the company with that id, or `undefined` or `null` if there is none. If it throws, the delivery is
   * answered 503, so that it is sent again, and the error's name and message are logged.
   */
  find(id: string): Promise<Company | null | undefined> | Company | null | undefined;
}

/** The id of the company in an application that configures one company without an id. */
export const DEFAULT_COMPANY = 'default';

/**
 * A company, complete and validated. Its secrets are private fields behind getters: `JSON.stringify` and
 * `util.inspect` do not show them.
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
