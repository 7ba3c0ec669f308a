import type { IncomingHttpHeaders } from 'node:http';
import type { ResolvedReceiveOptions } from '../inbox/receive/receive-options.js';
import {
  checkFields,
  isWhole,
  mustBe,
  optional,
  optionsInvalid,
  whole,
} from '../errors/option-checks.js';
import type { OptionChecks } from '../errors/option-checks.js';

/** Nest injection token of the endpoint's path without the global prefix (`string | null`). */
export const WEBHOOK_PATH = Symbol('PAYMENTS_WEBHOOK_PATH');
export const WEBHOOK_OPTIONS = Symbol('PAYMENTS_WEBHOOK_OPTIONS');

export const DEFAULT_WEBHOOK_PATH = 'webhooks/payments';

/** The data of a webhook request that is available before its body is read. */
export interface AdmissionRequest {
  /** Id of the company in the path, or `default`. It is possible that no company has this id. */
  readonly company: string;
  /** Path and query of the request, as sent. */
  readonly url: string;
  /** Headers by lower-case name. The sender can set every header to any value. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /**
   * Remote address of the connection, as Node.js gives it: `203.0.113.7`, `2001:db8::1`, or `::ffff:203.0.113.7` for an
   * IPv4 address on a socket for IPv4 and IPv6. Behind a proxy, the address is that of the proxy. On a serverless
   * platform, the value is `undefined`.
   */
  readonly address: string | undefined;
  /**
   * The request of Express or Fastify. Behind a proxy, the `ip` of this request is the address of the client if the
   * application has set `trust proxy` (Express) or `trustProxy` (Fastify).
   */
  readonly request: unknown;
}

/** The response to send if an {@link AdmissionCheck} rejects the request. The check returns this object. */
export interface AdmissionRejection {
  /** HTTP status, 400 to 599. Default 403. */
  readonly status?: number;
  /** Value of the header `Retry-After`, in whole seconds, 0 to 86,400. Default: no such header. */
  readonly retryAfterSeconds?: number;
  /** `message` in the body of the response. Default: `The application rejected the request.` */
  readonly message?: string;
}

/**
 * The application's own check of a webhook request. The check returns nothing (or a promise of nothing) to admit the
 * request.
 *
 * If the check throws, rejects, returns anything else, or takes longer than `webhook.bodyTimeoutMs`, the response is
 * 503 and the cause is logged, at most once per minute.
 *
 * @example
 * ```ts
 * const service = new BlockList();
 * service.addSubnet('203.0.113.0', 24);
 *
 * const before: AdmissionCheck = ({ address = '' }) => {
 *   if (!service.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return { status: 403 };
 *   return undefined;
 * };
 * ```
 */
export type AdmissionCheck = (
  request: AdmissionRequest,
  // `void` allows a function without a return statement.
) => AdmissionRejection | undefined | void | Promise<AdmissionRejection | undefined | void>;

/** Options for the admission and reading of webhook requests. Every field has a default. */
export interface WebhookOptions {
  /**
   * The application's own check of each webhook request, before its body is read: for example an allowlist of addresses
   * or a rate limit. Default: none.
   */
  before?: AdmissionCheck;
  /**
   * Maximum size of a body in bytes; the response to a larger body is 413. 1,024 to 67,108,864. Default 1,048,576 (1
   * MiB).
   */
  bodyLimitBytes?: number;
  /**
   * Milliseconds within which the body has to arrive; after this time the response is 408. The time that `before` takes
   * is included. 100 to `deadlineMs`. Default 5,000, or `deadlineMs` if that is less.
   */
  bodyTimeoutMs?: number;
  /**
   * Maximum number of webhook requests whose signature is not verified yet. If a further request arrives, the response
   * to the oldest pending request is 503. If all pending requests are younger than 25 ms, the response to the new
   * request is 503 instead. 1 to 100,000. Default 256.
   */
  maxPending?: number;
  /**
   * Maximum number of bytes that are buffered for all webhook requests whose signature is not verified yet.
   * `bodyLimitBytes` to 4,294,967,296. Default 8,388,608 (8 MiB), or `bodyLimitBytes` if that is more.
   */
  maxPendingBytes?: number;
  /**
   * Maximum number of lookups per second, and maximum number of lookups at the same time, in a {@link CompanyDirectory}
   * for companies that never had a webhook request with a valid signature. Above this limit, the response is 503, and
   * the service may send the event again. Lookups for the application's own calls are not limited. 1 to 10,000. Default
   * 50.
   */
  maxLookupsPerSecond?: number;
  /**
   * Maximum age of an event in milliseconds: from its `timestamp` to its receipt, by the clock of this process. An
   * older event may be a replay of an event whose id the inbox has already deleted. Therefore, the response is 200, but
   * the event is stored as `stale`, and its handlers run only after a redrive. A copy of an event that is still stored
   * is a duplicate at any age.
   *
   * 1,000 to 315,360,000,000 (10 years), with a durable inbox at most `worker.retainIdsMs`; `false` for no limit.
   * Default: `worker.retainIdsMs` with a durable inbox; `false` with the memory inbox. The memory inbox has no limit by
   * default, because it loses all ids at a restart. After a restart, a late event is more likely than a replay.
   *
   * If the clock of a process is slow, the process computes too small an age for events. It can then accept a replay
   * whose id is already deleted. If your clocks can differ, set the limit lower than `worker.retainIdsMs` by more than
   * this difference. With the memory inbox, set `maxAgeMs` to at most `worker.retainIdsMs`.
   */
  maxAgeMs?: number | false;
}

export type ResolvedWebhookOptions = Readonly<
  Required<Omit<WebhookOptions, 'before' | 'maxAgeMs'>> & {
    before: AdmissionCheck | undefined;
    /** `undefined` for the default, which depends on the inbox; see `resolveMaxAge()`. */
    maxAgeMs: number | false | undefined;
  }
>;

const MIB = 1024 ** 2;
const MAX_AGE = { min: 1000, max: 3650 * 86_400_000 };
const checkBodyLimit = whole({ default: MIB, min: 1024, max: 64 * MIB, unit: 'bytes' });

export function resolveWebhookOptions(
  options: WebhookOptions = {},
  { deadlineMs }: Pick<ResolvedReceiveOptions, 'deadlineMs'>,
): ResolvedWebhookOptions {
  // The limit for the bytes of all pending bodies must allow at least one body of the maximum size.
  const limit = checkBodyLimit('webhook.bodyLimitBytes', options?.bodyLimitBytes);
  return checkFields('webhook', options, {
    before: optional<AdmissionCheck>('a function', (value) => typeof value === 'function'),
    bodyLimitBytes: checkBodyLimit,
    bodyTimeoutMs: whole({
      default: Math.min(5000, deadlineMs),
      min: 100,
      max: deadlineMs,
      unit: 'milliseconds',
    }),
    maxPending: whole({ default: 256, min: 1, max: 100_000, unit: 'requests' }),
    maxPendingBytes: whole({
      default: Math.max(8 * MIB, limit),
      min: limit,
      max: 4096 * MIB,
      unit: 'bytes',
    }),
    maxLookupsPerSecond: whole({ default: 50, min: 1, max: 10_000, unit: 'lookups' }),
    maxAgeMs: checkMaxAge,
  } satisfies OptionChecks<WebhookOptions>);
}

function checkMaxAge(name: string, value: unknown): number | false | undefined {
  if (value === undefined || value === false) return value;
  const { min, max } = MAX_AGE;
  if (isWhole(value, min, max)) return value;
  const hint =
    'Leave it out for "worker.retainIdsMs" with a durable inbox, and no limit with the memory inbox.';
  const expected = `a whole number of milliseconds from ${min} to ${max}, or false for no limit`;
  throw mustBe(name, expected, value, hint);
}

/**
 * Returns the path with one leading slash: `/webhooks/payments` for `webhooks/payments`. Returns `null` for `false`.
 */
export function resolveWebhookPath(path: string | false = DEFAULT_WEBHOOK_PATH): string | null {
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
