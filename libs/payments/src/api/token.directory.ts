import { createHmac, randomBytes } from 'node:crypto';
import type { ResolvedCompany } from '../companies/company.js';
import type { AccessToken } from './access-token.js';

/**
 * The token of each company, one per company id, base URL and credentials: two companies, two hosts or two
 * secrets never share one, and a company whose secret was changed starts with a new one.
 *
 * Bounded: the least recently used goes first. It is not closed then, since calls may be waiting for it.
 */
export class TokenDirectory {
  // Keys are seen in a heap dump or a debugger, so they hold a digest of the credentials, keyed with a secret
  // of this instance: without it, a short client secret could be guessed from its digest.
  readonly #digestKey = randomBytes(32);
  readonly #tokens = new Map<string, AccessToken>();
  /** The key of a company object that was seen before: a digest per call would be a waste. */
  readonly #keys = new WeakMap<ResolvedCompany, string>();
  readonly #capacity: number;
  readonly #create: (company: ResolvedCompany) => AccessToken;

  /**
   * @param capacity tokens held at once
   * @param create makes the token of a company; nothing is requested until it is asked for
   */
  constructor(capacity: number, create: (company: ResolvedCompany) => AccessToken) {
    this.#capacity = capacity;
    this.#create = create;
  }

  /** The token of this company. */
  of(company: ResolvedCompany): AccessToken {
    const key = this.#keyOf(company);
    const token = this.#tokens.get(key) ?? this.#create(company);
    // A Map keeps the order of insertion: the first key is the one that was used longest ago.
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
