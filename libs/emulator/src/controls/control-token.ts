import { createHash, timingSafeEqual } from 'node:crypto';

const CREDENTIALS = /^(bearer|basic) +(\S+)$/i;

/** Verifies control tokens in constant time. */
export class ControlToken {
  readonly #digest: Buffer;

  constructor(token: string) {
    this.#digest = digest(token);
  }

  /**
   * Verifies an `Authorization` header, which contains the control token as a Bearer token, or as the password of HTTP
   * Basic with any user name.
   */
  verify(authorization: string | undefined): 'valid' | 'missing' | 'wrong' {
    const given = tokenOf(authorization);
    if (given === undefined) return 'missing';
    return timingSafeEqual(digest(given), this.#digest) ? 'valid' : 'wrong';
  }
}

function tokenOf(authorization = ''): string | undefined {
  const [, scheme = '', value] = CREDENTIALS.exec(authorization) ?? [];
  if (value === undefined || scheme.toLowerCase() === 'bearer') return value;
  const [, password] = /:(.*)$/s.exec(Buffer.from(value, 'base64').toString()) ?? [];
  return password;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
