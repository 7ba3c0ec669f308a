import { createHash, timingSafeEqual } from 'node:crypto';
import type { EmulatorClock } from '../clock/emulator.clock.js';

/** Wrong tokens within a minute that are answered as such. */
const WRONG = 10;
const MINUTE_MS = 60_000;
const CREDENTIALS = /^(bearer|basic) +(\S+)$/i;

/** What a request proves. `throttled`: wrong, like many before it within the last minute. */
export type ControlProof = 'right' | 'missing' | 'wrong' | 'throttled';

/** Compares control tokens in constant time. The right one is never refused, however many wrong ones others send. */
export class ControlToken {
  readonly #digest: Buffer;
  #wrong = 0;
  #since = 0;

  constructor(
    token: string,
    private readonly clock: EmulatorClock,
  ) {
    this.#digest = digest(token);
  }

  /** Checks an `Authorization` header: the token as Bearer, or as the password of any user in Basic. */
  prove(authorization: string | undefined): ControlProof {
    const given = tokenOf(authorization);
    if (given === undefined) return 'missing';
    if (timingSafeEqual(digest(given), this.#digest)) return 'right';
    const now = this.clock.now();
    if (Math.abs(now - this.#since) >= MINUTE_MS) {
      this.#since = now;
      this.#wrong = 0;
    }
    this.#wrong += 1;
    return this.#wrong > WRONG ? 'throttled' : 'wrong';
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
