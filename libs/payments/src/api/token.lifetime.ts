/** Assumed where the service's `expires_in` makes no sense, in milliseconds: short, so that little depends on it. */
export const FALLBACK_LIFETIME_MS = 300_000;

/**
 * The longest a token is used, whatever the service says, in milliseconds. A token lives about an hour;
 * the limit of a day prevents that a wrong unit keeps a token for ever.
 */
const MAX_LIFETIME_MS = 86_400_000;

const SOFT_MS = 120_000;
const HARD_MS = 30_000;

/** A point in time, on both clocks. */
export interface Instant {
  wall: number;
  monotonic: number;
}

/** How long a token may be used, and when a new one is due. */
export interface TokenLife {
  /** When it ends, on each clock: it is over when either says so. */
  ends: Instant;
  /** Under this much left, a new token is fetched in the background. Milliseconds. */
  softMs: number;
  /** Under this much left, callers wait for the new token. Milliseconds. */
  hardMs: number;
}

/**
 * Reads `expires_in`: a whole number of seconds, as a number or, as the service sends it, as a
 * string of digits. Anything else, and nought, which would mean a request per call, is `undefined`.
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
 * The life of a token.
 *
 * @param sent when its request was sent: the service's clock for it began after that, never before
 * @param chance from 0 to 1; a quarter of the soft window is left to it, so that processes that started
 *   together don't renew together
 */
export function tokenLife(sent: Instant, lifetimeMs: number, chance: number): TokenLife {
  return {
    ends: { wall: sent.wall + lifetimeMs, monotonic: sent.monotonic + lifetimeMs },
    softMs: Math.min(SOFT_MS, lifetimeMs / 10) * (0.75 + chance / 4),
    hardMs: Math.min(HARD_MS, lifetimeMs / 20),
  };
}

/**
 * What is left of a token, in milliseconds. The smaller of two clocks: the wall clock may have been set back,
 * and the monotonic one may have stood still while the machine slept.
 */
export function remainingMs(life: TokenLife, now: Instant): number {
  return Math.min(life.ends.wall - now.wall, life.ends.monotonic - now.monotonic);
}
