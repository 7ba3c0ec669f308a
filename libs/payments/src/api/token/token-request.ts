import type { ResolvedCompany } from '../../companies/company.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ApiLogger } from '../request-observer.js';
import { callUrl } from '../http/request-url.js';
import { parseBody } from '../http/answer-body.js';
import type { HttpAnswer, HttpFailure, HttpRequest } from '../http/exchange.js';
import type { RequestObserver } from '../request-observer.js';
import { parseRetryAfterMs } from '../http/response-headers.js';
import { FALLBACK_LIFETIME_MS, parseLifetimeMs } from './token-lifetime.js';

const PATH = '/v1/auth/token';
const BODY = Buffer.from(JSON.stringify({ grant_type: 'client_credentials' }));
const MAX_BYTES = 64 * 1024;

/** The result of a token request. */
export type TokenOutcome = { ok: true; value: string; lifetimeMs: number } | TokenFailure;

/** A token request that gave no token. */
export interface TokenFailure {
  ok: false;
  code: 'invalid_credentials' | 'token_unavailable';
  /** Cause and fix, for people. It contains no secret. */
  message: string;
  status?: number | undefined;
  /** The answer's `Retry-After`, in milliseconds. */
  retryAfterMs?: number | undefined;
}

/** What a token request needs. */
export interface TokenRequestParts {
  send: (request: HttpRequest) => Promise<HttpAnswer | HttpFailure>;
  runtime: PaymentsRuntime;
  logger: ApiLogger;
  observe: RequestObserver;
  userAgent: string;
}

/** Sends `POST /v1/auth/token` for a company. Never rejects. */
export async function requestToken(
  company: ResolvedCompany,
  parts: TokenRequestParts,
  signal: AbortSignal,
): Promise<TokenOutcome> {
  const { runtime, observe } = parts;
  const began = runtime.monotonic();
  const result = await parts.send({
    method: 'POST',
    url: callUrl(company.baseUrl, PATH),
    headers: {
      accept: 'application/json',
      authorization: basic(company),
      'content-type': 'application/json',
      'user-agent': parts.userAgent,
      'x-auth-token': false,
    },
    body: BODY,
    signal,
    maxBytes: MAX_BYTES,
  });
  observe({
    company: company.id,
    method: 'POST',
    path: PATH,
    status: result.status,
    failure: result.kind === 'failure' ? result.reason : undefined,
    attempt: 1,
    elapsedMs: runtime.monotonic() - began,
  });
  const endpoint = `The token endpoint of company '${company.id}' at ${new URL(company.baseUrl).host}`;
  if (result.kind === 'failure') {
    const cause = result.errno ?? result.reason;
    return unavailable(`${endpoint} could not be reached or read (${cause})`, result.status);
  }
  return result.status >= 200 && result.status <= 299
    ? read(result, endpoint, parts.logger)
    : rejected(result, endpoint, runtime.now());
}

/** The `Authorization` header of a token request. UTF-8, because a secret may contain any character. */
function basic({ clientId, clientSecret }: ResolvedCompany): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64')}`;
}

function read(answer: HttpAnswer, endpoint: string, logger: ApiLogger): TokenOutcome {
  const body = parseBody(answer.body, 'application/json') as Record<string, unknown> | undefined;
  const value = typeof body === 'object' ? body?.['access_token'] : undefined;
  // The token is sent in a header, so it must not contain a line break.
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    return unavailable(`${endpoint} gave no usable access_token`, answer.status);
  }
  const lifetimeMs = parseLifetimeMs(body?.['expires_in']);
  if (lifetimeMs === undefined) {
    logger.warn(
      `${endpoint} gave an expires_in that is not a whole number of seconds; ` +
        `its token is used for ${FALLBACK_LIFETIME_MS / 1000} s`,
    );
  }
  return { ok: true, value, lifetimeMs: lifetimeMs ?? FALLBACK_LIFETIME_MS };
}

function rejected({ status, headers }: HttpAnswer, endpoint: string, now: number): TokenOutcome {
  const retryAfterMs = parseRetryAfterMs(headers['retry-after'], now);
  if (status === 401) {
    const message =
      `${endpoint} rejected the credentials (401): check that clientId and clientSecret are right ` +
      'and belong to this base URL; sandbox and production each have their own';
    return { ok: false, code: 'invalid_credentials', message, status, retryAfterMs };
  }
  return unavailable(`${endpoint} answered ${status}${hint(status)}`, status, retryAfterMs);
}

function hint(status: number): string {
  if (status >= 300 && status <= 399)
    return ', a redirect, which is not followed: check the base URL';
  if (status !== 404 && status !== 405) return '';
  return ` to POST ${PATH}: check the base URL, to which this path is added; it must not contain the /v1`;
}

function unavailable(message: string, status?: number, retryAfterMs?: number): TokenOutcome {
  return { ok: false, code: 'token_unavailable', message, status, retryAfterMs };
}
