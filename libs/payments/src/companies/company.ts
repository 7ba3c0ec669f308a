import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

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
   * rotation loses no delivery. 1 to 10 secrets, none empty, without white space or quotes around them. No two
   * companies may have one in common: a delivery for one would be accepted as the other's. In a list of companies
   * this is an error at boot; of a directory it is logged.
   */
  webhookSecret: string | readonly string[];
  /** Address of the service for this company. Default: the module's `baseUrl`. */
  baseUrl?: string;
}

/**
 * Finds a company in the application's own database.
 *
 * Answers are cached: a company for 60 s, `undefined` and another id for 5 s, a failure for 1 s. For ids that never
 * had a delivery with a valid signature, at most `webhook.maxLookupsPerSecond` lookups are made per second. So
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
   * Returns the company with that id, or `undefined` or `null` if there is none.
   *
   * The `id` of the company must be exactly the one asked for, which for deliveries to the path without a company is
   * `default`. With another `id` or none, for example from a database that ignores case, the delivery is answered
   * 401 (`company_unknown`), nothing is stored, and a warning is logged.
   *
   * If it throws or takes longer than `deadlineMs`, the delivery is answered 503 (`directory_unavailable`), so that
   * it is sent again, and the error's name and message are logged, at most once per minute.
   */
  find(id: string): Promise<Company | null | undefined> | Company | null | undefined;
}

/** The id of the company in an application that configures one company without an id. */
export const DEFAULT_COMPANY = 'default';

/**
 * A webhook secret that is prepared once and signs any number of bodies. `JSON.stringify` and `util.inspect`
 * show nothing of it.
 *
 * @example
 * ```ts
 * const key = new SigningKey('whsec_1');
 * key.sign(body).toString('hex'); // 128 hex digits
 * ```
 */
export class SigningKey {
  readonly #key: KeyObject;

  /** @param secret the webhook secret as the payments service has it. The key is its UTF-8 encoding. */
  constructor(secret: string) {
    this.#key = createSecretKey(secret, 'utf8');
  }

  /** The HMAC-SHA512 of the body: 64 bytes. */
  sign(body: Uint8Array): Buffer {
    return createHmac('sha512', this.#key).update(body).digest();
  }
}

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
