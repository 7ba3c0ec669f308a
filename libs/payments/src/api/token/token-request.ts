import type { Logger } from '@nestjs/common';
import type { ResolvedCompany } from '../../companies/company.js';
import { LogLine } from '../../errors/log-line.js';
import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import {
  callUrl,
  isSuccess,
  parseBody,
  parseRetryAfterMs,
  USER_AGENT,
  type HttpFailure,
  type HttpRequest,
  type HttpResponse,
} from '../http/http-exchange.js';

const PATH = '/v1/auth/token';
const BODY = Buffer.from(JSON.stringify({ grant_type: 'client_credentials' }));
const MAX_BYTES = 64 * 1024;

/** The result of a token request. */
export type TokenResult = { ok: true; value: string; lifetimeMs: number } | TokenFailure;

/** A token request that returned no token. */
export interface TokenFailure {
  ok: false;
  code: 'invalid_credentials' | 'token_unavailable';
  /** Cause and fix, without secrets. */
  message: string;
  status?: number | undefined;
  /** The `Retry-After` of the response, in milliseconds. */
  retryAfterMs?: number | undefined;
}

/**
 * The call was not sent, because there is no access token. `invalid_credentials`: the service rejected the client id
 * and secret. `token_unavailable`: the token endpoint is down, too slow, or sent an unusable response.
 */
export class PaymentsTokenError extends PaymentsError {
  override readonly name = 'PaymentsTokenError';
  /** Id of the company whose token it is. */
  readonly company: string;
  /** Status of the token endpoint's response, if there was one. */
  readonly status: number | undefined;
  /** Milliseconds until the module sends another token request. */
  readonly retryAfterMs: number;

  constructor(
    code: 'invalid_credentials' | 'token_unavailable',
    message: string,
    facts: Pick<PaymentsTokenError, 'company' | 'status' | 'retryAfterMs'>,
  ) {
    super(code, message);
    this.company = facts.company;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** Dependencies of {@link requestToken}. */
export interface TokenRequestParts {
  send: (request: HttpRequest) => Promise<HttpResponse | HttpFailure>;
  runtime: PaymentsRuntime;
  logger: Pick<Logger, 'warn'>;
}

/** Sends `POST /v1/auth/token` for a company. Never rejects. */
export async function requestToken(
  company: ResolvedCompany,
  parts: TokenRequestParts,
  signal: AbortSignal,
): Promise<TokenResult> {
  const result = await parts.send({
    method: 'POST',
    url: callUrl(company.baseUrl, PATH),
    headers: {
      accept: 'application/json',
      authorization: basic(company),
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      'x-auth-token': false,
    },
    body: BODY,
    signal,
    maxBytes: MAX_BYTES,
  });
  const endpoint = `The token endpoint of company '${company.id}' at ${new URL(company.baseUrl).host}`;
  if (result.kind === 'failure') {
    const cause = result.errno ?? result.reason;
    return unavailable(`${endpoint} could not be reached or read (${cause})`, result.status);
  }
  return isSuccess(result.status)
    ? readToken(result, endpoint, company.id, parts.logger)
    : errorStatus(result, endpoint, parts.runtime.now());
}

/** The `Authorization` header of a token request, in UTF-8, because a secret may contain any character. */
function basic({ clientId, clientSecret }: ResolvedCompany): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64')}`;
}

function readToken(
  response: HttpResponse,
  endpoint: string,
  company: string,
  logger: Pick<Logger, 'warn'>,
): TokenResult {
  const body = parseBody(response.body, 'application/json') as Record<string, unknown> | undefined;
  const value = typeof body === 'object' ? body?.['access_token'] : undefined;
  // The token is sent in a header, so it must not contain a line break.
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    return unavailable(`${endpoint} returned no usable access_token`, response.status);
  }
  const lifetimeMs = parseLifetimeMs(body?.['expires_in']);
  if (lifetimeMs === undefined) {
    const line =
      `${endpoint} returned an expires_in that is not a positive whole number of seconds; the token is used for ` +
      `${FALLBACK_LIFETIME_MS / 1000} s`;
    logger.warn(new LogLine(line, { company }));
  }
  return { ok: true, value, lifetimeMs: lifetimeMs ?? FALLBACK_LIFETIME_MS };
}

function errorStatus(
  { status, headers }: HttpResponse,
  endpoint: string,
  now: number,
): TokenResult {
  const retryAfterMs = parseRetryAfterMs(headers['retry-after'], now);
  if (status === 401) {
    const message =
      `${endpoint} rejected the credentials (401): check that clientId and clientSecret are right ` +
      'and belong to this base URL; sandbox and production each have their own';
    return { ok: false, code: 'invalid_credentials', message, status, retryAfterMs };
  }
  return unavailable(`${endpoint} responded with ${status}${hint(status)}`, status, retryAfterMs);
}

function hint(status: number): string {
  if (status >= 300 && status <= 399)
    return ', a redirect, which is not followed: check the base URL';
  if (status !== 404 && status !== 405) return '';
  return ` to POST ${PATH}: check the base URL. The module adds this path to it, so it must not end in /v1`;
}

function unavailable(message: string, status?: number, retryAfterMs?: number): TokenResult {
  return { ok: false, code: 'token_unavailable', message, status, retryAfterMs };
}

/** The lifetime if `expires_in` is invalid, in milliseconds: short, because the real lifetime is unknown. */
const FALLBACK_LIFETIME_MS = 300_000;

/**
 * The longest time that a token is used, in milliseconds. A token is valid for about an hour; the limit of a day
 * protects against an `expires_in` in a wrong unit.
 */
const MAX_LIFETIME_MS = 86_400_000;

/** The longest soft window, in milliseconds. In it, a background request renews the token. */
const SOFT_MS = 120_000;
/** The longest hard window, in milliseconds. In it, callers wait for the new token. */
const HARD_MS = 30_000;

/** A point in time on both clocks, in milliseconds. */
export interface Instant {
  wall: number;
  monotonic: number;
}

/** How long a token can be used, and when to renew it. */
export interface TokenLife {
  /** The token expires as soon as either clock has passed its time in `ends`. */
  ends: Instant;
  /** If fewer milliseconds than this are left, a new token is fetched in the background. */
  softMs: number;
  /** If fewer milliseconds than this are left, callers wait for the new token. */
  hardMs: number;
}

/**
 * Reads `expires_in`, a whole number of seconds: a number or, as the service sends it, a string of digits.
 *
 * @returns milliseconds, at most a day; `undefined` for any other value and for 0, which would cause a token request
 *   per call
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
 * Calculates how long a token can be used and when to renew it.
 *
 * @param sent when the token request was sent; the service counts the lifetime from a later time
 * @param random from 0 to 1, for jitter of a quarter of `softMs`, so that processes that started together do not renew
 *   together
 */
export function tokenLife(sent: Instant, lifetimeMs: number, random: number): TokenLife {
  return {
    ends: { wall: sent.wall + lifetimeMs, monotonic: sent.monotonic + lifetimeMs },
    softMs: Math.min(SOFT_MS, lifetimeMs / 10) * (0.75 + random / 4),
    hardMs: Math.min(HARD_MS, lifetimeMs / 20),
  };
}

/**
 * Returns the milliseconds until a token expires: the smaller value of two clocks, because the wall clock may have been
 * set back, and the monotonic clock may have stopped while the machine was suspended.
 */
export function remainingMs(life: TokenLife, now: Instant): number {
  return Math.min(life.ends.wall - now.wall, life.ends.monotonic - now.monotonic);
}
