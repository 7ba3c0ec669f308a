import type { ResolvedCompany } from '../companies/company.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type { TokenOutcome } from './access-token.js';
import type { ApiLogger } from './api.logger.js';
import { callUrl } from './api.path.js';
import { parseBody } from './http/body.js';
import type { HttpAnswer, HttpFailure, HttpRequest } from './http/exchange.js';
import type { RequestObserver } from './request.observer.js';
import { parseRetryAfterMs } from './retry-after.header.js';
import { FALLBACK_LIFETIME_MS, parseLifetimeMs } from './token.lifetime.js';

const PATH = '/v1/auth/token';
const BODY = Buffer.from(JSON.stringify({ grant_type: 'client_credentials' }));
const MAX_BYTES = 64 * 1024;

/** What a token request needs. */
export interface TokenRequestParts {
  send: (request: HttpRequest) => Promise<HttpAnswer | HttpFailure>;
  runtime: PaymentsRuntime;
  logger: ApiLogger;
  observe: RequestObserver;
  userAgent: string;
}

/** `POST /v1/auth/token` for a company. Never rejects. */
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
    const why = result.errno ?? result.reason;
    return unavailable(`${endpoint} could not be reached or read (${why})`, result.status);
  }
  return result.status >= 200 && result.status <= 299
    ? read(result, endpoint, parts.logger)
    : refused(result, endpoint, runtime.now());
}

/** The `Authorization` of a token request. UTF-8, so that no character of a secret is lost. */
function basic({ clientId, clientSecret }: ResolvedCompany): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64')}`;
}

function read(answer: HttpAnswer, endpoint: string, logger: ApiLogger): TokenOutcome {
  const body = parseBody(answer.body, 'application/json') as Record<string, unknown> | undefined;
  const value = typeof body === 'object' ? body?.['access_token'] : undefined;
  // What goes into a header must not be able to end it.
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    return unavailable(`${endpoint} gave no usable access_token`, answer.status);
  }
  const lifetimeMs = parseLifetimeMs(body?.['expires_in']);
  if (lifetimeMs === undefined) {
    logger.warn(
      `${endpoint} gave an expires_in that is no whole number of seconds; ` +
        `its token is used for ${FALLBACK_LIFETIME_MS / 1000} s`,
    );
  }
  return { ok: true, value, lifetimeMs: lifetimeMs ?? FALLBACK_LIFETIME_MS };
}

function refused({ status, headers }: HttpAnswer, endpoint: string, now: number): TokenOutcome {
  const retryAfterMs = parseRetryAfterMs(headers['retry-after'], now);
  if (status === 401) {
    const message =
      `${endpoint} refused the credentials (401): check that clientId and clientSecret are right ` +
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
