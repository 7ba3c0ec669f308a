/**
 * Determines when a fault applies. Without fields, the fault always applies. With `next: 3` only, the fault applies
 * three times, and then never again. With `probability` only, the fault applies at random, and the same seed gives the
 * same decisions. With `next: 3` and `probability: 0.1`, the fault applies three times, and from then on with a
 * probability of 0.1.
 */
export interface FaultTrigger {
  /** How many times the fault applies before `probability` decides, 0 to 1,000,000. */
  readonly next?: number | undefined;
  /** The probability that the fault applies, from 0 (never) to 1 (always). */
  readonly probability?: number | undefined;
}

/**
 * A time in milliseconds, 0 to 3,600,000: one value, or a range from which a random value is drawn. The same seed gives
 * the same random values.
 */
export type FaultDelay = number | readonly [min: number, max: number];

/**
 * Faults of deliveries. The emulator decides once per event whether `drop`, `duplicate` and `reorder` apply, and once
 * per copy of the event whether `delay` applies. It decides once per attempt whether `tamperBody`, `tamperSignature`
 * and `oldSecret` apply, so that a redelivery can succeed after a tampered first attempt.
 */
export interface DeliveryFaults {
  /**
   * An outage of all deliveries: the emulator sends no attempt and keeps no attempt for later. The emulator logs all
   * attempts as `dropped`, including scheduled retries, but still sends manual redeliveries. The webhook stays active,
   * and its settings do not show the outage.
   */
  readonly off?: true | undefined;
  /** The emulator never sends the event. */
  readonly drop?: FaultTrigger | undefined;
  /** Sends `copies` further deliveries of the same event at the same time. 1 to 100. Default: 1. */
  readonly duplicate?: (FaultTrigger & { readonly copies?: number | undefined }) | undefined;
  /** Delays each delivery by `ms`. Whether the fault applies is decided separately for each copy of the event. */
  readonly delay?: (FaultTrigger & { readonly ms: FaultDelay }) | undefined;
  /**
   * Delays deliveries until `window` deliveries are waiting (2 to 1,000; default: 4), or until the first delivery has
   * waited for `maxWaitMs` milliseconds (0 to 3,600,000; default: 1,000). Then sends the waiting deliveries one at a
   * time, in an order that always differs from the original order.
   */
  readonly reorder?:
    | (FaultTrigger & {
        readonly window?: number | undefined;
        readonly maxWaitMs?: number | undefined;
      })
    | undefined;
  /**
   * Changes the body after signing. `value` (default): changes the amount, or the event's id if there is no amount;
   * `respace`: changes the white space of the JSON; `truncate`: sends only the first half of the body.
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
  /**
   * Signs with the secret that was valid before the last rotation, or with an unrelated secret if there was no
   * rotation.
   */
  readonly oldSecret?: FaultTrigger | undefined;
  /**
   * Redelivery schedule of failed deliveries: milliseconds (0 to 86,400,000) before each further attempt, at most 20
   * attempts. `[]`: none. Default: the emulator's `redeliver` option. The service does not document its redelivery
   * schedule.
   */
  readonly redeliver?: readonly number[] | undefined;
}

/**
 * Faults of responses. `slow` can apply together with any other fault. If several faults other than `slow` apply, only
 * the first of them in the order of this interface takes effect.
 */
export interface ResponseFaults {
  /** Delays the response by `ms`. */
  readonly slow?: (FaultTrigger & { readonly ms: FaultDelay }) | undefined;
  /** Resets the connection without a response, `before` (default) or `after` the request takes effect. */
  readonly reset?: (FaultTrigger & { readonly when?: 'before' | 'after' | undefined }) | undefined;
  /** Responds with 401, even if the token or the credentials are valid. */
  readonly unauthorized?: FaultTrigger | undefined;
  /** Responds with a server error. `status`: 500 to 599. Default: 503. */
  readonly error?: (FaultTrigger & { readonly status?: number | undefined }) | undefined;
  /** Responds with 429. `retryAfter`: seconds, or the complete header value. Default: 1. */
  readonly rateLimit?:
    (FaultTrigger & { readonly retryAfter?: number | string | undefined }) | undefined;
  /** Sends half of the response and closes the connection, after the request has taken effect. */
  readonly truncate?: FaultTrigger | undefined;
  /**
   * Pads the response to `bytes` (1 to 1,073,741,824; default: 16,777,216), after the request has taken effect. `bytes`
   * is the size before the `encoding`, which is `identity` (default) or `gzip`.
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
  /** Replaces `expires_in` by `value`, any JSON value. Without `value`, the response has no field `expires_in`. */
  readonly expiresIn?: (FaultTrigger & { readonly value?: unknown }) | undefined;
  /** Returns the previous token again until this token expires. */
  readonly sameToken?: FaultTrigger | undefined;
}

/** Faults of calls with an access token. */
export interface ApiFaults extends ResponseFaults {
  /**
   * Hides transactions: `GET /v1/transactions/{id}` responds with 404, and `GET /emulator/payments` omits the
   * transaction. With `forMs`, hides only transactions that are younger than `forMs` milliseconds (1 to 86,400,000) by
   * the emulator's clock. Whether the fault applies is decided for each transaction in each response.
   */
  readonly notFound?: (FaultTrigger & { readonly forMs?: number | undefined }) | undefined;
  /**
   * Contradicts completed transactions: `GET /v1/transactions/{id}` and `GET /emulator/payments` return another status.
   * `status`: 1 to 64 characters, not `complete`; default: the option `failedStatus`. The transaction itself stays
   * complete. Whether the fault applies is decided for each completed transaction in each response.
   */
  readonly otherStatus?: (FaultTrigger & { readonly status?: string | undefined }) | undefined;
}

/**
 * A company's faults. With the same seed, the same company id and the same order of calls, random decisions give the
 * same faults.
 *
 * @example
 * { delivery: { duplicate: {}, tamperSignature: { next: 1 } }, api: { unauthorized: { next: 3 } } }
 */
export interface FaultPlan {
  readonly delivery?: DeliveryFaults | undefined;
  /** Faults of `POST /v1/auth/token`. */
  readonly token?: TokenFaults | undefined;
  /**
   * Faults of every call with an access token, including calls of the emulator's own endpoints, such as
   * `/emulator/checkout-invoices`.
   */
  readonly api?: ApiFaults | undefined;
}

/** The faults of one target of a plan: `delivery`, `token` or `api`. */
export type FaultsOf<T extends keyof FaultPlan> = NonNullable<FaultPlan[T]>;

/** Returns an error message that names the accepted values, or undefined if the value is valid. */
export type Check = (value: unknown) => string | undefined;

/** A field of a fault: the values that the emulator accepts, and how the emulator's page shows the field. */
export interface FaultField {
  readonly label: string;
  /**
   * How the page converts the text that the user types. `delay`: milliseconds, or a range `min-max`; `list`:
   * milliseconds, separated by commas.
   */
  readonly kind: 'number' | 'delay' | 'list' | 'json' | 'text';
  /** The accepted values, if the user selects one of several. */
  readonly options?: readonly string[];
  /** The text that the page shows until the user types or selects another text. */
  readonly value?: string;
  readonly required?: true;
  readonly check: Check;
}

/** A fault: its texts on the page and in the README, and its fields. */
export interface FaultDefinition {
  readonly label: string;
  readonly description: string;
  /** The fields of the fault in addition to `next` and `probability`. */
  readonly fields?: Readonly<Record<string, FaultField>>;
  /**
   * Set for a fault whose value is not an object but `true` or a list. Such a fault does not have the fields `next` and
   * `probability`.
   */
  readonly only?: FaultField | true;
}

/** The definitions of all faults of a target. Each definition contains all fields of its fault. */
type DefinitionsOf<T> = {
  readonly [N in keyof T]-?: NonNullable<T[N]> extends FaultTrigger
    ? FaultDefinition & FieldsOf<Omit<NonNullable<T[N]>, keyof FaultTrigger>>
    : FaultDefinition & Required<Pick<FaultDefinition, 'only'>>;
};

type FieldsOf<T> = keyof T extends never
  ? unknown
  : { readonly fields: { readonly [F in keyof T]-?: FaultField } };

const whole =
  (min: number, max: number, unit?: string): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `must be a whole number ${unit === undefined ? '' : `of ${unit} `}from ${min} to ${max}`;

const DELAY_BOUNDS = [0, 3_600_000, 'milliseconds'] as const;
const milliseconds = whole(...DELAY_BOUNDS);

/** The checks of the fields `next` and `probability`, which every fault whose value is an object can have. */
export const TRIGGER: Readonly<Record<keyof FaultTrigger, Check>> = {
  next: whole(0, 1_000_000, 'times'),
  probability: (value) =>
    typeof value === 'number' && value >= 0 && value <= 1
      ? undefined
      : 'must be a number from 0 to 1',
};

export const OTHER_STATUS = {
  pattern: /^(?!complete$).{1,64}$/,
  description: '1 to 64 characters other than "complete"',
} as const;

const retryAfter: Check = (value) =>
  typeof value === 'string' && /^[\x20-\x7e]{1,100}$/.test(value)
    ? undefined
    : whole(0, 86_400, 'seconds')(value) && 'must be seconds from 0 to 86400, or a header value';

/** Creates a field that accepts whole numbers. */
function wholeField(
  label: string,
  value: string | undefined,
  ...bounds: Parameters<typeof whole>
): FaultField {
  return {
    label,
    kind: 'number',
    ...(value !== undefined && { value }),
    check: whole(...bounds),
  };
}

/** Creates a field that accepts one of the given words. The first word is the default. */
function choice(label: string, ...options: string[]): FaultField {
  return {
    label,
    kind: 'text',
    options,
    value: options[0]!,
    check: (value) =>
      options.includes(value as string) ? undefined : `must be one of ${options.join(', ')}`,
  };
}

const DELAY: FaultField = {
  label: 'milliseconds, or min-max',
  kind: 'delay',
  value: '2000',
  required: true,
  check: (value) => {
    if (!Array.isArray(value)) return milliseconds(value);
    const [min, max] = value as unknown[];
    const valid = value.length === 2 && !milliseconds(min) && !milliseconds(max);
    return valid && (min as number) <= (max as number)
      ? undefined
      : 'must be milliseconds from 0 to 3600000, or a range [min, max] of them';
  },
};

const RESPONSE: DefinitionsOf<ResponseFaults> = {
  slow: {
    label: 'Slow',
    description: 'Delays the response, also together with another fault.',
    fields: { ms: DELAY },
  },
  reset: {
    label: 'Reset',
    description:
      'Resets the connection without a response, before or after the request takes effect.',
    fields: { when: choice('before or after the request takes effect', 'before', 'after') },
  },
  unauthorized: {
    label: '401 Unauthorized',
    description: 'Responds with 401, as if the credentials or the token were not valid.',
  },
  error: {
    label: '5xx server error',
    description: 'Responds with a server error, as during an outage.',
    fields: {
      status: wholeField('status', '503', 500, 599),
    },
  },
  rateLimit: {
    label: '429 Too Many Requests',
    description:
      'Responds with 429 and a Retry-After header, as if the merchant sent too many requests.',
    fields: {
      retryAfter: { label: 'Retry-After', kind: 'text', value: '1', check: retryAfter },
    },
  },
  truncate: {
    label: 'Truncated',
    description: 'Sends half of the response, then closes the connection.',
  },
  oversize: {
    label: 'Oversized',
    description: 'Pads the response to a size that the merchant should reject.',
    fields: {
      bytes: wholeField('bytes', '16777216', 1, 1_073_741_824, 'bytes'),
      encoding: choice('encoding', 'identity', 'gzip'),
    },
  },
};

const DELIVERY: DefinitionsOf<DeliveryFaults> = {
  off: {
    label: 'Outage',
    description: 'Sends nothing and keeps nothing for later, as during an outage.',
    only: true,
  },
  duplicate: {
    label: 'Duplicate',
    description:
      'Sends further copies of the same event at the same time; the merchant should process it once.',
    fields: {
      copies: wholeField('number of copies', '1', 1, 100, 'copies'),
    },
  },
  reorder: {
    label: 'Reorder',
    description: 'Delays deliveries until several are waiting, then sends them in another order.',
    fields: {
      window: wholeField('number of deliveries', '4', 2, 1000, 'deliveries'),
      maxWaitMs: wholeField('maximum wait in milliseconds', '1000', ...DELAY_BOUNDS),
    },
  },
  delay: {
    label: 'Delay',
    description: 'Waits before it sends each delivery.',
    fields: { ms: DELAY },
  },
  drop: {
    label: 'Drop',
    description: 'Does not send the event, and logs the attempt as dropped.',
  },
  tamperBody: {
    label: 'Tamper with the body',
    description: 'Changes the body after signing, so that the signature does not match.',
    fields: { how: choice('how', 'value', 'respace', 'truncate') },
  },
  tamperSignature: {
    label: 'Tamper with the signature',
    description:
      'Makes the signature invalid, or omits it; the merchant should reject the request.',
    fields: { how: choice('how', 'digit', 'missing', 'malformed', 'scheme') },
  },
  oldSecret: {
    label: 'Old secret',
    description:
      'Signs with the secret before the last rotation, or with an unrelated secret if there was no rotation.',
  },
  redeliver: {
    label: 'Redelivery schedule',
    description:
      "Makes further attempts of a failed delivery after these waits, instead of the emulator's schedule.",
    only: {
      label: 'waits in milliseconds',
      kind: 'list',
      value: '1000, 5000, 30000',
      check: (value) =>
        Array.isArray(value) && value.length <= 20 && value.every((ms) => !whole(0, 86_400_000)(ms))
          ? undefined
          : 'must be a list of at most 20 waits in milliseconds, each from 0 to 86400000',
    },
  },
};

const TOKEN: DefinitionsOf<TokenFaults> = {
  ...RESPONSE,
  lifetime: {
    label: 'Short-lived tokens',
    description: 'Issues tokens with a shorter lifetime.',
    fields: {
      seconds: { ...wholeField('seconds', '20', 1, 86_400, 'seconds'), required: true },
    },
  },
  expiresIn: {
    label: 'Invalid expires_in',
    description:
      'Replaces the field expires_in with any JSON value, or omits the field if the setting is empty.',
    fields: {
      value: {
        label: 'JSON',
        kind: 'json',
        value: '"soon"',
        check: (value) =>
          ['function', 'symbol', 'bigint'].includes(typeof value) ? 'must be JSON' : undefined,
      },
    },
  },
  sameToken: {
    label: 'Same token',
    description: 'Returns the previous token again until it expires.',
  },
};

const API: DefinitionsOf<ApiFaults> = {
  ...RESPONSE,
  notFound: {
    label: 'Transaction not found',
    description:
      'Responds with 404 to lookups of transactions, as if the transactions did not exist yet.',
    fields: {
      forMs: wholeField(
        'only for … milliseconds after the creation',
        undefined,
        1,
        86_400_000,
        'milliseconds',
      ),
    },
  },
  otherStatus: {
    label: 'Contradictory status',
    description: 'Lookups of a completed transaction return another status.',
    fields: {
      status: {
        label: 'status',
        kind: 'text',
        value: 'failed',
        check: (value) =>
          typeof value === 'string' && OTHER_STATUS.pattern.test(value)
            ? undefined
            : `must be ${OTHER_STATUS.description}`,
      },
    },
  },
};

/**
 * All faults, in the order in which the page shows them. The JSON form of this constant contains no checks, because
 * checks are functions.
 */
export const FAULTS: {
  readonly [T in keyof FaultPlan]-?: {
    readonly title: string;
    readonly description: string;
    readonly faults: DefinitionsOf<FaultsOf<T>>;
  };
} = {
  delivery: {
    title: 'Deliveries',
    description: 'Webhook requests from the emulator to the merchant.',
    faults: DELIVERY,
  },
  token: {
    title: 'Token endpoint',
    description: 'Responses to POST /v1/auth/token.',
    faults: TOKEN,
  },
  api: {
    title: 'Calls with a token',
    description: 'Responses to all other calls of the merchant.',
    faults: API,
  },
};
