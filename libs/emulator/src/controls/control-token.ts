import { createHash, timingSafeEqual } from 'node:crypto';
import type { EmulatorClock } from '../runtime/emulator-clock.js';

/** Number of wrong tokens per minute above which wrong tokens get the result `throttled`. */
const WRONG_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
const CREDENTIALS = /^(bearer|basic) +(\S+)$/i;

/** `throttled`: the token is wrong, and there were too many wrong tokens within a minute. */
export type ControlTokenResult = 'valid' | 'missing' | 'wrong' | 'throttled';

/** Verifies control tokens in constant time. The valid token is always accepted, regardless of the number of wrong tokens. */
export class ControlToken {
  readonly #digest: Buffer;
  #wrongCount = 0;
  #minuteStart = 0;

  constructor(
    token: string,
    private readonly clock: EmulatorClock,
  ) {
    this.#digest = digest(token);
  }

  /** Verifies an `Authorization` header, which contains the token as Bearer, or as the Basic password of any user. */
  verify(authorization: string | undefined): ControlTokenResult {
    const given = tokenOf(authorization);
    if (given === undefined) return 'missing';
    if (timingSafeEqual(digest(given), this.#digest)) return 'valid';
    const now = this.clock.now();
    if (Math.abs(now - this.#minuteStart) >= MINUTE_MS) {
      this.#minuteStart = now;
      this.#wrongCount = 0;
    }
    this.#wrongCount += 1;
    return this.#wrongCount > WRONG_PER_MINUTE ? 'throttled' : 'wrong';
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
