import {
  integerOption,
  optionsInvalid,
  rejectUnknownNames,
  shown,
  shownText,
  type IntegerBounds,
} from '../errors/payments-error.js';
import { addHttpOptions, type HttpOptions, type ResolvedHttpOptions } from './http/http-options.js';
import { resolveRetryPolicy, type RetryPolicy } from './call/retry-policy.js';

/** The method of a logger that the API client uses. Nest's `Logger` has it. */
export interface ApiLogger {
  /** `message` is a string, or an object that JSON loggers print with its fields. `String(message)` is the sentence. */
  warn(message: unknown): void;
}

/** How the module calls the payments service. Every option has a default. */
export interface PaymentsApiOptions extends HttpOptions {
  /**
   * The request header for the token. The service accepts both headers and recommends `authorization`, the default.
   * The module sends only one of them.
   */
  tokenHeader?: 'authorization' | 'x-auth-token';
  /**
   * The longest one attempt of a call may take, including connecting and reading the response, in milliseconds.
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
  /** The largest response body that is read, in bytes after decompression. 1 to 268,435,456. Default 5,242,880. */
  maxResponseBytes?: number;
  /** When a GET is retried; `false` for never. Every field of {@link RetryPolicy} has a default. */
  retry?: Partial<RetryPolicy> | false;
  /**
   * The most companies whose tokens are kept. The token that was not used for the longest time is dropped first.
   * 1 to 1,000,000. Default 10,000.
   */
  maxCompanies?: number;
  /**
   * The response header with the id that the service gave the request. The service documents none.
   * Default `x-request-id`.
   */
  requestIdHeader?: string;
  /**
   * The header for `idempotencyKey`. The service documents none, so there is no default, and calls with a key
   * reject with a `TypeError` until this is set. A key does not cause a POST to be retried.
   */
  idempotencyHeader?: string;
  /** The `User-Agent` header of requests. 1 to 200 printable ASCII characters. Default `nestjs-payments`. */
  userAgent?: string;
  /** The logger for warnings. Default: a Nest `Logger` with the context `PaymentsApi`. */
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
  'logger',
  ...Object.keys(NUMBERS),
];

/**
 * Checks and freezes the options at boot, and adds the defaults.
 *
 * @throws PaymentsError `options_invalid`, naming the option, its unit, its bounds and the fix
 */
export function resolveApiOptions(input: PaymentsApiOptions = {}): ResolvedApiOptions {
  if (typeof input !== 'object' || input === null) {
    throw optionsInvalid(`"api" must be an object of options; it is ${shown(input)}.`);
  }
  rejectUnknownNames('api.', input, NAMES);
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
    requestIdHeader: headerName('requestIdHeader', input.requestIdHeader) ?? 'x-request-id',
    idempotencyHeader: headerName('idempotencyHeader', input.idempotencyHeader),
    userAgent: userAgent(input.userAgent),
    logger: logger(input.logger),
  };
  return Object.freeze(addHttpOptions(resolved, input));
}

function tokenHeader(value: unknown): 'authorization' | 'x-auth-token' {
  if (value === undefined || value === 'authorization') return 'authorization';
  if (value === 'x-auth-token') return value;
  throw optionsInvalid(
    `"api.tokenHeader" must be 'authorization' (default) or 'x-auth-token'; it is ${shownText(value)}.`,
  );
}

function userAgent(value: unknown): string {
  if (value === undefined) return 'nestjs-payments';
  if (typeof value === 'string' && /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/.test(value)) {
    return value;
  }
  throw optionsInvalid(
    `"api.userAgent" must be 1 to 200 printable ASCII characters, without spaces at its ends; it is ${shownText(value)}.`,
  );
}

function headerName(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]{1,100}$/.test(value)) {
    return value.toLowerCase();
  }
  throw optionsInvalid(
    `"api.${name}" must be the name of an HTTP header of 1 to 100 characters, such as x-request-id; it is ${shownText(value)}.`,
  );
}

function logger(value: ApiLogger | undefined): ApiLogger | undefined {
  if (value === undefined || typeof value?.warn === 'function') return value;
  throw optionsInvalid('"api.logger" must be a logger with warn(), such as Nest\'s.');
}
