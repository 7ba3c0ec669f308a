/**
 * Determines when a fault applies. Without fields, the fault always applies. With `next` only, the fault applies the
 * next n times, then never. With `probability` only, the fault applies at random, and the same seed repeats the
 * decisions. With both fields, the fault applies the next n times, then at random.
 */
export interface FaultTrigger {
  /** How many times the fault applies next, regardless of the probability. 0 to 1,000,000. */
  readonly next?: number | undefined;
  /** The probability that the fault applies, from 0 (never) to 1 (always). */
  readonly probability?: number | undefined;
}

/** A time in milliseconds, 0 to 3,600,000: one value, or a range for a random value, which the same seed repeats. */
export type FaultDelay = number | readonly [min: number, max: number];

/**
 * Faults of deliveries. `drop`, `duplicate`, `delay` and `reorder` are decided once per event; `tamperBody`,
 * `tamperSignature` and `oldSecret` once per attempt, so that a redelivery can succeed after a tampered first attempt.
 */
export interface DeliveryFaults {
  /**
   * An outage of all deliveries: the emulator sends no attempt and keeps no attempt for later. It logs all attempts as
   * `dropped`, including scheduled retries. It still sends manual redeliveries. The webhook stays active, and its
   * settings do not show the outage.
   */
  readonly off?: true | undefined;
  /** The emulator never sends the event. */
  readonly drop?: FaultTrigger | undefined;
  /** Sends `copies` further deliveries of the same event at the same time. 1 to 100. Default: 1. */
  readonly duplicate?: (FaultTrigger & { readonly copies?: number | undefined }) | undefined;
  /** Delays each delivery by `ms`. The fault is decided separately for each copy. */
  readonly delay?: (FaultTrigger & { readonly ms: FaultDelay }) | undefined;
  /**
   * Delays deliveries until `window` of them are waiting (2 to 1,000; default: 4) or the first delivery has waited
   * `maxWaitMs` milliseconds (0 to 3,600,000; default: 1,000). Then sends them one at a time, in an order that always
   * differs from the original order.
   */
  readonly reorder?:
    | (FaultTrigger & {
        readonly window?: number | undefined;
        readonly maxWaitMs?: number | undefined;
      })
    | undefined;
  /**
   * Changes the body after signing. `value` (default): another amount, or another id if there is no amount; `respace`:
   * the same JSON with other white space; `truncate`: half of the body.
   */
  readonly tamperBody?:
    (FaultTrigger & { readonly how?: 'value' | 'respace' | 'truncate' | undefined }) | undefined;
  /**
   * Makes the signature invalid. `digit` (default): changes one hex digit; `missing`: omits the header; `malformed`:
   * shortens the signature; `scheme`: changes the prefix to `sha256=`.
   */
  readonly tamperSignature?:
    | (FaultTrigger & { readonly how?: 'digit' | 'missing' | 'malformed' | 'scheme' | undefined })
    | undefined;
  /** Signs with the secret before the last rotation, or with an unrelated secret if there was no rotation. */
  readonly oldSecret?: FaultTrigger | undefined;
  /**
   * Redelivery schedule of failed deliveries: milliseconds (0 to 86,400,000) before each further attempt, at most 20
   * attempts. `[]`: none. Default: the emulator's `redeliver` option. The service does not document its redelivery
   * schedule.
   */
  readonly redeliver?: readonly number[] | undefined;
}

/**
 * Faults of responses. `slow` combines with any other fault. If several other faults apply, only the first of these
 * faults in the order of this interface takes effect.
 */
export interface ResponseFaults {
  /** Delays the response by `ms`. */
  readonly slow?: (FaultTrigger & { readonly ms: FaultDelay }) | undefined;
  /** Resets the connection without a response, `before` (default) or `after` the request takes effect. */
  readonly reset?: (FaultTrigger & { readonly when?: 'before' | 'after' | undefined }) | undefined;
  /** Responds with 401, whatever the token or the credentials are. */
  readonly unauthorized?: FaultTrigger | undefined;
  /** Responds with a server error. `status`: 500 to 599. Default: 503. */
  readonly error?: (FaultTrigger & { readonly status?: number | undefined }) | undefined;
  /** Responds with 429. `retryAfter`: seconds, or the complete header value. Default: 1. */
  readonly rateLimit?:
    (FaultTrigger & { readonly retryAfter?: number | string | undefined }) | undefined;
  /** Sends half of the response and closes the connection. The request takes effect. */
  readonly truncate?: FaultTrigger | undefined;
  /**
   * Pads the response to `bytes` (1 to 1,073,741,824; default: 16,777,216). The size is counted before the `encoding`,
   * which is `identity` (default) or `gzip`. The request takes effect.
   */
  readonly oversize?:
    | (FaultTrigger & {
        readonly bytes?: number | undefined;
        readonly encoding?: 'identity' | 'gzip' | undefined;
      })
    | undefined;
}

/** Faults of the token endpoint. Use `error` or `reset` to emulate an outage. */
export interface TokenFaults extends ResponseFaults {
  /** Issues tokens with a lifetime of `seconds` (1 to 86,400) and a matching `expires_in`. */
  readonly lifetime?: (FaultTrigger & { readonly seconds: number }) | undefined;
  /** Replaces `expires_in` by `value`, any JSON value. Without `value`, the field is omitted. */
  readonly expiresIn?: (FaultTrigger & { readonly value?: unknown }) | undefined;
  /** Returns the previous token again until this token expires. */
  readonly sameToken?: FaultTrigger | undefined;
}

/** Faults of calls with an access token. */
export interface ApiFaults extends ResponseFaults {
  /**
   * Hides transactions: `GET /v1/transactions/{id}` responds with 404, and `GET /emulator/payments` omits the
   * transaction. With `forMs`, hides only transactions that are younger than `forMs` milliseconds (1 to 86,400,000) by
   * the emulator's clock. The fault is decided for each transaction in each response.
   */
  readonly notFound?: (FaultTrigger & { readonly forMs?: number | undefined }) | undefined;
  /**
   * Contradicts completed transactions: `GET /v1/transactions/{id}` and `GET /emulator/payments` return another status.
   * `status`: 1 to 64 characters, not `complete`; default: the option `failedStatus`. The transaction itself stays
   * complete. The fault is decided for each completed transaction in each response.
   */
  readonly otherStatus?: (FaultTrigger & { readonly status?: string | undefined }) | undefined;
}

/**
 * A company's faults. Random decisions depend on the emulator's seed and the company's id only: the same seed and the same
 * order of calls give the same faults.
 *
 * @example
 * { delivery: { duplicate: {}, tamperSignature: { next: 1 } }, api: { unauthorized: { next: 3 } } }
 */
export interface FaultPlan {
  readonly delivery?: DeliveryFaults | undefined;
  /** Faults of `POST /v1/auth/token`. */
  readonly token?: TokenFaults | undefined;
  /** Faults of every call with an access token, including the emulator's own, such as `/emulator/checkout-invoices`. */
  readonly api?: ApiFaults | undefined;
}

/** The faults of one target of a plan: `delivery`, `token` or `api`. */
export type FaultsOf<T extends keyof FaultPlan> = NonNullable<FaultPlan[T]>;
