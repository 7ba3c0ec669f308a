/**
 * When a fault strikes. Neither field: always. `next` alone: the next n times, then never.
 * `probability` alone: by the seeded dice. Both: the next n times for certain, then by the dice.
 */
export interface FaultTrigger {
  /** How many times from now on it strikes for certain. 0 to 1,000,000. */
  readonly next?: number | undefined;
  /** From 0 (never) to 1 (always). */
  readonly probability?: number | undefined;
}

/** A time in milliseconds, 0 to 3,600,000: one value, or a range the seeded dice draw from. */
export type FaultDelay = number | readonly [min: number, max: number];

/**
 * What goes wrong with deliveries. `drop`, `duplicate`, `delay` and `reorder` strike once for each
 * event; `tamperBody`, `tamperSignature` and `oldSecret` strike each attempt anew, so that a
 * redelivery can mend what the first attempt spoilt.
 */
export interface DeliveryFaults {
  /** The event is never sent. */
  readonly drop?: FaultTrigger | undefined;
  /** `copies` further deliveries of the same event, at the same moment. 1 to 100. Default: 1. */
  readonly duplicate?: (FaultTrigger & { readonly copies?: number | undefined }) | undefined;
  /** Each delivery (each copy for itself) waits `ms` first. */
  readonly delay?: (FaultTrigger & { readonly ms: FaultDelay }) | undefined;
  /**
   * Deliveries are held until `window` of them wait (2 to 1,000; default: 4) or the first has
   * waited `maxWaitMs` milliseconds (0 to 3,600,000; default: 1,000), then leave one after the
   * other in an order that is never the one they came in.
   */
  readonly reorder?:
    | (FaultTrigger & {
        readonly window?: number | undefined;
        readonly maxWaitMs?: number | undefined;
      })
    | undefined;
  /**
   * The body is changed after it was signed. `value` (default): another amount, or another id
   * where there is no amount; `respace`: the same JSON with other white space; `truncate`: half
   * of it.
   */
  readonly tamperBody?:
    (FaultTrigger & { readonly how?: 'value' | 'respace' | 'truncate' | undefined }) | undefined;
  /**
   * The signature is spoilt. `digit` (default): one hex digit changed; `missing`: no header;
   * `malformed`: too short; `scheme`: named `sha256`.
   */
  readonly tamperSignature?:
    | (FaultTrigger & { readonly how?: 'digit' | 'missing' | 'malformed' | 'scheme' | undefined })
    | undefined;
  /** Signed with the secret before the last rotation, or with a stranger's where none was. */
  readonly oldSecret?: FaultTrigger | undefined;
  /**
   * When a failed delivery is tried again: milliseconds (0 to 86,400,000) before each further
   * attempt, at most 20 of them. `[]`: never. Default: the emulator's own `redeliver` option; the
   * service does not show its schedule.
   */
  readonly redeliver?: readonly number[] | undefined;
}

/**
 * What goes wrong with an answer. `slow` goes with any other; of the rest the first that strikes,
 * in the order listed here, is the one that happens.
 */
export interface AnswerFaults {
  /** The answer waits `ms` first. */
  readonly slow?: (FaultTrigger & { readonly ms: FaultDelay }) | undefined;
  /**
   * The connection is reset without an answer: `before` (default) or `after` the request took
   * effect.
   */
  readonly reset?: (FaultTrigger & { readonly when?: 'before' | 'after' | undefined }) | undefined;
  /** 401, whatever the token or the credentials. */
  readonly unauthorized?: FaultTrigger | undefined;
  /** An error answer. `status`: 500 to 599. Default: 503. */
  readonly error?: (FaultTrigger & { readonly status?: number | undefined }) | undefined;
  /** 429. `retryAfter`: seconds, or the text of the header as it is. Default: 1. */
  readonly rateLimit?:
    (FaultTrigger & { readonly retryAfter?: number | string | undefined }) | undefined;
  /** Half of the answer, then the connection is closed. The request took effect. */
  readonly truncate?: FaultTrigger | undefined;
  /**
   * The answer grows by padding to `bytes` (1 to 1,073,741,824; default: 16,777,216), counted
   * before `encoding`: `identity` (default) or `gzip`. The request took effect.
   */
  readonly oversize?:
    | (FaultTrigger & {
        readonly bytes?: number | undefined;
        readonly encoding?: 'identity' | 'gzip' | undefined;
      })
    | undefined;
}

/** What goes wrong at the token endpoint. It is "down" by `error` or by `reset`. */
export interface TokenFaults extends AnswerFaults {
  /** Tokens live `seconds` (1 to 86,400) and say so. */
  readonly lifetime?: (FaultTrigger & { readonly seconds: number }) | undefined;
  /** `expires_in` is `value`, any JSON at all; without `value` the field is left out. */
  readonly expiresIn?: (FaultTrigger & { readonly value?: unknown }) | undefined;
  /** The token issued before is handed out again until it expires. */
  readonly sameToken?: FaultTrigger | undefined;
}

/**
 * A company's faults, drawn by dice that the emulator's seed and the company's id fix: the same
 * seed and the same order of calls go wrong the same way again.
 *
 * @example
 * { delivery: { duplicate: {}, tamperSignature: { next: 1 } }, api: { unauthorized: { next: 3 } } }
 */
export interface FaultPlan {
  readonly delivery?: DeliveryFaults | undefined;
  /** `POST /v1/auth/token`. */
  readonly token?: TokenFaults | undefined;
  /** Every call that carries a token, the emulator's `/emulator/checkout-invoices` included. */
  readonly api?: AnswerFaults | undefined;
}
