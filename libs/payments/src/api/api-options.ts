import {
  integerOption,
  refuseUnknownNames,
  shown,
  type IntegerBounds,
} from '../errors/options-invalid.js';
import type { ApiLogger } from './request-observer.js';
import { addHttpOptions, type HttpOptions, type ResolvedHttpOptions } from './http/http-options.js';
import { functionOption, headerNameOption, optionInvalid } from './option-checks.js';
import type { RequestObserver } from './request-observer.js';
import { resolveRetryPolicy, type RetryPolicy } from './call/retry-policy.js';

/** How the module calls the payments service. Every option has a default. */
export interface PaymentsApiOptions extends HttpOptions {
  /**
   * The header that contains the token. The service accepts both and recommends `authorization`, the default. Only
   * one of them is sent.
   */
  tokenHeader?: 'authorization' | 'x-auth-token';
  /**
   * The longest one attempt of a call may take, including connecting and reading the answer, in milliseconds.
   * 1 to 300,000. Default 10,000.
   */
  attemptTimeoutMs?: number;
  /**
   * The longest a whole call may take, in milliseconds: the wait for a token, all attempts and the waits between
   * them. 1 to 600,000. Default 20,000.
   */
  deadlineMs?: number;
  /** The longest a token request may take, in milliseconds. 1 to 120,000. Default 10,000. */
  tokenTimeoutMs?: number;
  /** The largest answer that is read, in bytes after decompression. 1 to 268,435,456. Default 5,242,880. */
  maxResponseBytes?: number;
  /** When a GET is retried; `false` for never. See {@link RetryPolicy} for the defaults. */
  retry?: Partial<RetryPolicy> | false;
  /** The most tokens kept, one per company; the least recently used is dropped. 1 to 1,000,000. Default 10,000. */
  maxCompanies?: number;
  /**
   * The header of an answer that contains the request's id in the log of the service. The service documents none.
   * Default `x-request-id`.
   */
  requestIdHeader?: string;
  /**
   * The header for `idempotencyKey`. The service documents none, so there is no default, and calls with a key are
   * rejected until this is set. A key does not cause a POST to be retried.
   */
  idempotencyHeader?: string;
  /** The `User-Agent` header of requests. 1 to 200 printable ASCII characters. Default `nestjs-payments`. */
  userAgent?: string;
  /**
   * Called after every attempt, including token requests, with facts that are safe to log or count. Its errors are
   * ignored; the first is logged.
   *
   * @example
   * ```ts
   * onRequest: ({ method, path, status, elapsedMs }) => histogram.observe({ method, path, status }, elapsedMs)
   * ```
   */
  onRequest?: RequestObserver;
  /** Logs warnings. Default: a Nest `Logger` with the context `PaymentsApi`. */
  logger?: ApiLogger;
}

/** {@link PaymentsApiOptions}, complete, checked and frozen. */
export interface ResolvedApiOptions extends ResolvedHttpOptions {
  readonly tokenHeader: 'authorization' | 'x-auth-token';
  readonly attemptTimeoutMs: number;
  readonly deadlineMs: number;
  readonly tokenTimeoutMs: number;
  readonly maxResponseBytes: number;
  readonly retry: Readonly<RetryPolicy>;
  readonly maxCompanies: number;
  readonly requestIdHeader: string;
  readonly idempotencyHeader: string | undefined;
  readonly userAgent: string;
  readonly onRequest: RequestObserver | undefined;
  readonly logger: ApiLogger | undefined;
}

/** Nest injection token of the {@link ResolvedApiOptions} in use. */
export const PAYMENTS_API_OPTIONS = Symbol('PAYMENTS_API_OPTIONS');

const MS = 'milliseconds';
const NUMBERS = {
  attemptTimeoutMs: { default: 10_000, min: 1, max: 300_000, unit: MS },
  deadlineMs: { default: 20_000, min: 1, max: 600_000, unit: MS },
  tokenTimeoutMs: { default: 10_000, min: 1, max: 120_000, unit: MS },
  maxResponseBytes: { default: 5 * 1024 ** 2, min: 1, max: 256 * 1024 ** 2, unit: 'bytes' },
  maxSockets: { default: 64, min: 1, max: 10_000, unit: 'sockets' },
  maxCompanies: { default: 10_000, min: 1, max: 1_000_000, unit: 'companies' },
} satisfies Record<string, IntegerBounds>;

const NAMES = [
  'tokenHeader',
  'retry',
  'adapter',
  'agents',
  'dispatcher',
  'http',
  'requestIdHeader',
  'idempotencyHeader',
  'userAgent',
  'onRequest',
  'logger',
  ...Object.keys(NUMBERS),
];

/**
 * Completes, checks and freezes the options, once, at boot.
 *
 * @throws PaymentsError `options_invalid`, naming the option, its unit, its bounds and the fix
 */
export function resolveApiOptions(input: PaymentsApiOptions = {}): ResolvedApiOptions {
  if (typeof input !== 'object' || input === null) {
    throw optionInvalid('api', `is ${shown(input)}`, 'give an object of options, or leave it out');
  }
  refuseUnknownNames('api.', input, NAMES);
  const number = (name: keyof typeof NUMBERS): number =>
    integerOption(`api.${name}`, input[name], NUMBERS[name]);
  const resolved = {
    tokenHeader: tokenHeader(input.tokenHeader),
    attemptTimeoutMs: number('attemptTimeoutMs'),
    deadlineMs: number('deadlineMs'),
    tokenTimeoutMs: number('tokenTimeoutMs'),
    maxResponseBytes: number('maxResponseBytes'),
    retry: resolveRetryPolicy(input.retry),
    maxSockets: number('maxSockets'),
    maxCompanies: number('maxCompanies'),
    requestIdHeader:
      headerNameOption('api.requestIdHeader', input.requestIdHeader) ?? 'x-request-id',
    idempotencyHeader: headerNameOption('api.idempotencyHeader', input.idempotencyHeader),
    userAgent: userAgent(input.userAgent),
    onRequest: functionOption('api.onRequest', input.onRequest),
    logger: logger(input.logger),
  };
  return Object.freeze(addHttpOptions(resolved, input));
}

function tokenHeader(value: unknown): 'authorization' | 'x-auth-token' {
  if (value === undefined || value === 'authorization') return 'authorization';
  if (value === 'x-auth-token') return value;
  throw optionInvalid(
    'api.tokenHeader',
    `is ${shown(value)}`,
    "give 'authorization' (default) or 'x-auth-token'",
  );
}

function userAgent(value: unknown): string {
  if (value === undefined) return 'nestjs-payments';
  if (typeof value === 'string' && /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/.test(value)) {
    return value;
  }
  throw optionInvalid(
    'api.userAgent',
    `is ${shown(value)}`,
    'give 1 to 200 printable ASCII characters',
  );
}

function logger(value: ApiLogger | undefined): ApiLogger | undefined {
  if (value === undefined || typeof value?.warn === 'function') return value;
  throw optionInvalid('api.logger', 'has no warn()', "give a logger like Nest's, or leave it out");
}
