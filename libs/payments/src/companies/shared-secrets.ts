import { randomBytes } from 'node:crypto';
import type { ResolvedCompany } from './company.js';

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
