/** Used if the service's `expires_in` is invalid, in milliseconds: short, because the real one is unknown. */
export const FALLBACK_LIFETIME_MS = 300_000;

/**
 * The longest a token is used, in milliseconds. A token is valid for about an hour. The limit of a day protects
 * against an `expires_in` in a wrong unit.
 */
const MAX_LIFETIME_MS = 86_400_000;

const SOFT_MS = 120_000;
const HARD_MS = 30_000;

/** A point in time, on both clocks. */
export interface Instant {
  wall: number;
  monotonic: number;
}

/** How long a token can be used, and when it is renewed. */
export interface TokenLife {
  /** When it expires. It is expired if either clock has passed this. */
  ends: Instant;
  /** If less than this is left, a new token is fetched in the background. Milliseconds. */
  softMs: number;
  /** If less than this is left, callers wait for the new token. Milliseconds. */
  hardMs: number;
}

/**
 * Reads `expires_in`: a whole number of seconds, as a number or, as the service sends it, as a
 * string of digits. Anything else is `undefined`; so is 0, which would cause a request per call.
 */
export function parseLifetimeMs(expiresIn: unknown): number | undefined {
  const seconds =
    typeof expiresIn === 'string' && /^\d{1,15}$/.test(expiresIn) ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds) || seconds <= 0) {
    return undefined;
  }
  return Math.min(seconds * 1000, MAX_LIFETIME_MS);
}

/**
 * Calculates how long a token can be used.
 *
 * @param sent when its request was sent: the service counts the lifetime from a later time, never an earlier one
 * @param random from 0 to 1, for jitter of a quarter of the soft window: processes that started together do not
 *   renew together
 */
export function tokenLife(sent: Instant, lifetimeMs: number, random: number): TokenLife {
  return {
    ends: { wall: sent.wall + lifetimeMs, monotonic: sent.monotonic + lifetimeMs },
    softMs: Math.min(SOFT_MS, lifetimeMs / 10) * (0.75 + random / 4),
    hardMs: Math.min(HARD_MS, lifetimeMs / 20),
  };
}

/**
 * The time until a token expires, in milliseconds: the smaller value of two clocks, because the wall clock may have
 * been set back, and the monotonic clock may have stopped while the machine was suspended.
 */
export function remainingMs(life: TokenLife, now: Instant): number {
  return Math.min(life.ends.wall - now.wall, life.ends.monotonic - now.monotonic);
}
