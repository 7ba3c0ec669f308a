import { createHmac, randomBytes } from 'node:crypto';
import type { ResolvedCompany } from '../../companies/company.js';
import type { AccessToken } from './access-token.js';

/**
 * The access tokens, one per company id, base URL and credentials: two companies, two hosts or two secrets never
 * share a token, and a company whose secret was changed gets a new one.
 *
 * Bounded: the least recently used token is dropped first. It is not closed, because calls may wait for it.
 */
export class TokenCache {
  // Keys can be seen in a heap dump, so they contain a digest of the credentials. It is keyed with a random secret of
  // this instance, because a short client secret could be guessed from its plain digest.
  readonly #digestKey = randomBytes(32);
  readonly #tokens = new Map<string, AccessToken>();
  /** Keys of known company objects, to save a digest per call. */
  readonly #keys = new WeakMap<ResolvedCompany, string>();
  readonly #capacity: number;
  readonly #create: (company: ResolvedCompany) => AccessToken;

  /**
   * @param capacity the most tokens kept
   * @param create creates the token of a company; it sends no request before its first use
   */
  constructor(capacity: number, create: (company: ResolvedCompany) => AccessToken) {
    this.#capacity = capacity;
    this.#create = create;
  }

  /** Returns the token of this company. */
  get(company: ResolvedCompany): AccessToken {
    const key = this.#keyOf(company);
    const token = this.#tokens.get(key) ?? this.#create(company);
    // A Map keeps the order of insertion: the first key is the least recently used.
    this.#tokens.delete(key);
    this.#tokens.set(key, token);
    if (this.#tokens.size > this.#capacity) {
      const [oldest] = this.#tokens.keys();
      if (oldest !== undefined) this.#tokens.delete(oldest);
    }
    return token;
  }

  /** Closes every token. */
  close(): void {
    for (const token of this.#tokens.values()) token.close();
    this.#tokens.clear();
  }

  #keyOf(company: ResolvedCompany): string {
    const known = this.#keys.get(company);
    if (known !== undefined) return known;
    const { id, baseUrl, clientId, clientSecret } = company;
    const key = createHmac('sha256', this.#digestKey)
      .update(JSON.stringify([id, baseUrl, clientId, clientSecret]))
      .digest('base64');
    this.#keys.set(company, key);
    return key;
  }
}
