import type { RandomSource } from '../random/random.source.js';

/** A one-time code on its way to a phone. */
export interface OneTimeCode {
  /** Six digits. */
  readonly digits: string;
  /** Milliseconds since the Unix epoch; from then on it is refused. */
  readonly expiresAt: number;
  /** How many wrong tries it still survives; 0: it is refused whatever is typed. */
  readonly triesLeft: number;
}

/** How long a code is good for, and how many tries it has. The emulator's own numbers. */
const CODE_LIFETIME_MS = 300_000;
const CODE_TRIES = 3;

/** A new code of the emulator's seed. */
export function issueCode(random: RandomSource, now: number): OneTimeCode {
  return {
    digits: random.digits(6, 'one-time code'),
    expiresAt: now + CODE_LIFETIME_MS,
    triesLeft: CODE_TRIES,
  };
}

/** Whether a code can still be entered. */
export function isUsable(code: OneTimeCode, now: number): boolean {
  return code.triesLeft > 0 && now < code.expiresAt;
}

/** What became of a code that was typed: right, or the code with what to tell about it. */
export function checkCode(
  code: OneTimeCode,
  typed: string,
  now: number,
): 'right' | { readonly code: OneTimeCode; readonly problem: string | undefined } {
  // What is wrong with a code that can't be used is told by the page, whoever asks.
  if (!isUsable(code, now)) return { code, problem: undefined };
  const entered = typed.replace(/\s/g, '');
  if (entered === code.digits) return 'right';
  // A slip of the finger is not a guess.
  if (!/^\d{6}$/.test(entered)) return { code, problem: 'The code is six digits.' };
  const triesLeft = code.triesLeft - 1;
  const problem = `That is not the code. ${triesLeft} ${triesLeft === 1 ? 'try' : 'tries'} left.`;
  return { code: { ...code, triesLeft }, problem: triesLeft > 0 ? problem : undefined };
}
