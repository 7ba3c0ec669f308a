import type { RandomSource } from '../runtime/random-source.js';

export interface OneTimeCode {
  /** Six digits. */
  readonly digits: string;
  /** When the code expires, in milliseconds since the Unix epoch. The code is rejected from this time on. */
  readonly expiresAt: number;
  /** How many wrong codes the customer may still enter. If this number is 0, the emulator rejects every code. */
  readonly triesLeft: number;
}

/**
 * How long a one-time code is valid, and how many wrong codes a customer may enter. The service does not document its
 * own values.
 */
const CODE_LIFETIME_MS = 300_000;
const CODE_TRIES = 3;

export function issueCode(random: RandomSource, now: number): OneTimeCode {
  return {
    digits: random.digits(6, 'one-time code'),
    expiresAt: now + CODE_LIFETIME_MS,
    triesLeft: CODE_TRIES,
  };
}

export function isUsable(code: OneTimeCode, now: number): boolean {
  return code.triesLeft > 0 && now < code.expiresAt;
}

/** Checks an entered code. Returns `correct`, or the code with its remaining tries and the message to show. */
export function checkCode(
  code: OneTimeCode,
  typed: string,
  now: number,
): 'correct' | { readonly code: OneTimeCode; readonly problem: string | undefined } {
  // No message is needed here, because the page explains why a code is no longer usable.
  if (!isUsable(code, now)) return { code, problem: undefined };
  const entered = typed.replace(/\s/g, '');
  if (entered === code.digits) return 'correct';
  // Input that is not six digits does not count as a try.
  if (!/^\d{6}$/.test(entered)) return { code, problem: 'The code has six digits.' };
  const triesLeft = code.triesLeft - 1;
  const problem = `The code is wrong. ${triesLeft} ${triesLeft === 1 ? 'try' : 'tries'} left.`;
  return { code: { ...code, triesLeft }, problem: triesLeft > 0 ? problem : undefined };
}
