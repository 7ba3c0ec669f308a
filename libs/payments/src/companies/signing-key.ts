import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

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
