import type { ResolvedReceiveOptions } from '../inbox/inbox-options.js';
import {
  integerOption,
  optionsInvalid,
  rejectUnknownNames,
  shown,
} from '../errors/options-invalid.js';
import type { IntegerBounds } from '../errors/options-invalid.js';
import type { AdmissionCheck } from './admission-check.js';

/** Nest injection token of the endpoint's path before any prefix (`string | null`). */
export const WEBHOOK_PATH = Symbol('PAYMENTS_WEBHOOK_PATH');
/** Nest injection token of the {@link ResolvedWebhookOptions}. */
export const WEBHOOK_OPTIONS = Symbol('PAYMENTS_WEBHOOK_OPTIONS');

/** Where deliveries are received. An extra of `forRoot`, since routes are mapped before async options exist. */
export type WebhookPath = string | false;

/** Default of `webhookPath`. */
export const DEFAULT_WEBHOOK_PATH = 'webhooks/payments';

/** How the requests of deliveries are admitted and read. Every field has a default. */
export interface WebhookOptions {
  /**
   * The application's own check of each request, before its body is read: an allowlist of addresses, a rate limit. It
   * sees what {@link AdmissionRequest} lists, and returns nothing, or how the request is refused. Default: none.
   */
  before?: AdmissionCheck;
  /** Maximum size of a body in bytes; a larger one is answered 413. 1,024 to 67,108,864. Default 1,048,576 (1 MiB). */
  bodyLimitBytes?: number;
  /**
   * Milliseconds within which the body has to arrive; later the request is answered 408. It includes the time that
   * `before` takes. 100 to `deadlineMs`. Default 5,000, or `deadlineMs` if that is less.
   */
  bodyTimeoutMs?: number;
  /**
   * Maximum number of requests whose signature is not verified yet. If there are as many, the one that has waited
   * longest is answered 503, or the new one if all are younger than 25 ms. 1 to 100,000. Default 256.
   */
  maxPending?: number;
  /**
   * Maximum number of bytes that are buffered for these requests together. `bodyLimitBytes` to 4,294,967,296.
   * Default 8,388,608 (8 MiB), or `bodyLimitBytes` if that is more.
   */
  maxPendingBytes?: number;
  /**
   * Maximum number of lookups per second, and at the same time, in a {@link CompanyDirectory} for companies whose
   * deliveries never had a valid signature. A delivery above it is answered 503, so that it is sent again. Calls of
   * the application itself are not limited. 1 to 10,000. Default 50.
   */
  maxLookupsPerSecond?: number;
  /**
   * Maximum age of an event in milliseconds: from its `timestamp` to its receipt, by the clock of this process. An older
   * event may be a replay of one whose id is no longer remembered: it is answered 200 and stored as `stale`, and its
   * handlers run only after a redrive. A copy of an event that is remembered is a duplicate at any age.
   *
   * 1,000 to 315,360,000,000 (10 years), with a durable inbox at most `worker.knowMs`; `false` for no limit. Default:
   * `worker.knowMs` with a durable inbox, `false` with the memory inbox, which forgets all ids at a restart: there, a
   * late delivery is likelier than a replay.
   *
   * If the clock of this process is slow, a replay counts as fresh for as long after its id was forgotten: set a limit
   * that is below `worker.knowMs` by more than your clocks can differ. With the memory inbox, set at most its
   * `retentionMs`.
   */
  maxAgeMs?: number | false;
}

/** {@link WebhookOptions}, complete. */
export type ResolvedWebhookOptions = Readonly<
  Required<Omit<WebhookOptions, 'before' | 'maxAgeMs'>> & {
    before: AdmissionCheck | undefined;
    /** `undefined`: the default of the inbox in use; see `resolveMaxAge()`. */
    maxAgeMs: number | false | undefined;
  }
>;

const MIB = 1024 ** 2;
const BOUNDS = {
  bodyLimitBytes: { default: MIB, min: 1024, max: 64 * MIB, unit: 'bytes' },
  bodyTimeoutMs: { default: 5000, min: 100, max: 29_000, unit: 'milliseconds' },
  maxPending: { default: 256, min: 1, max: 100_000, unit: 'requests' },
  maxPendingBytes: { default: 8 * MIB, min: 1024, max: 4096 * MIB, unit: 'bytes' },
  maxLookupsPerSecond: { default: 50, min: 1, max: 10_000, unit: 'lookups' },
} satisfies Record<Exclude<keyof WebhookOptions, 'before' | 'maxAgeMs'>, IntegerBounds>;
const MAX_AGE = { min: 1000, max: 3650 * 86_400_000 };

/** @throws PaymentsError `options_invalid`. */
export function resolveWebhookOptions(
  options: WebhookOptions = {},
  { deadlineMs }: Pick<ResolvedReceiveOptions, 'deadlineMs'>,
): ResolvedWebhookOptions {
  if (typeof options !== 'object' || options === null) {
    throw optionsInvalid(`"webhook" must be an object of options; it is ${shown(options)}.`);
  }
  rejectUnknownNames('webhook.', options, ['before', ...Object.keys(BOUNDS), 'maxAgeMs']);
  const option = (name: keyof typeof BOUNDS, bounds: IntegerBounds = BOUNDS[name]): number =>
    integerOption(`webhook.${name}`, options[name], bounds);
  const { before } = options;
  if (before !== undefined && typeof before !== 'function') {
    throw optionsInvalid(`"webhook.before" must be a function; it is ${shown(before)}.`);
  }
  const bodyLimitBytes = option('bodyLimitBytes');
  return Object.freeze({
    before,
    bodyLimitBytes,
    bodyTimeoutMs: option('bodyTimeoutMs', {
      ...BOUNDS.bodyTimeoutMs,
      max: deadlineMs,
      default: Math.min(BOUNDS.bodyTimeoutMs.default, deadlineMs),
    }),
    maxPending: option('maxPending'),
    // A body of the largest size has to fit.
    maxPendingBytes: option('maxPendingBytes', {
      ...BOUNDS.maxPendingBytes,
      min: bodyLimitBytes,
      default: Math.max(BOUNDS.maxPendingBytes.default, bodyLimitBytes),
    }),
    maxLookupsPerSecond: option('maxLookupsPerSecond'),
    maxAgeMs: resolveMaxAgeOption(options.maxAgeMs),
  });
}

function resolveMaxAgeOption(value: unknown): number | false | undefined {
  if (value === undefined || value === false) return value;
  const { min, max } = MAX_AGE;
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) {
    return value as number;
  }
  throw optionsInvalid(
    `"webhook.maxAgeMs" must be a whole number of milliseconds from ${min} to ${max}, or false for no limit; it is ` +
      `${shown(value)}. Leave it out for "worker.knowMs" with a durable inbox, and no limit with the memory inbox.`,
  );
}

/** `/webhooks/payments` of `webhooks/payments`; `null` if no endpoint is mounted. */
export function resolveWebhookPath(path: WebhookPath = DEFAULT_WEBHOOK_PATH): string | null {
  if (path === false) return null;
  const trimmed = typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '') : '';
  const segments = trimmed.split('/');
  if (!segments.every((segment) => /^(?!\.{1,2}$)[\w.~-]+$/.test(segment))) {
    throw optionsInvalid(
      '"webhookPath" must be a plain path such as "webhooks/payments", without parameters, wildcards or dot ' +
        'segments, or false for a controller of your own.',
    );
  }
  return `/${trimmed}`;
}
