import type { ResolvedCompany } from '../companies/company.js';
import type { ModuleLogger } from '../errors/module-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import { Backoff } from '../runtime/backoff.js';
import { abortable, Deadline } from '../runtime/deadline.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { ObserverInfo } from '../telemetry/observers.js';
import {
  callUrl,
  isSuccess,
  parseBody,
  parseRetryAfterMs,
  USER_AGENT,
  type HttpResponse,
} from './http-exchange.js';
import type { Transport } from './transport.js';

export interface AccessTokenParts {
  company: string;
  runtime: PaymentsRuntime;
  logger: Pick<ModuleLogger, 'warn'>;
  /** Sends a token request. Should not reject. */
  requestToken: (signal: AbortSignal) => Promise<TokenResult>;
  timeoutMs: number;
  onEnded?: (info: ObserverInfo['tokenFetched']) => void;
}

const aborted = (): PaymentsError =>
  new PaymentsError('aborted', 'The wait for an access token was aborted');

/**
 * Milliseconds to wait after the service rejected the credentials. The wait is long, because a person has to correct
 * the credentials.
 */
const CREDENTIALS_WAIT_MS = 30_000;
/**
 * The longest wait that a `Retry-After` of the token endpoint can cause, in milliseconds. Without this limit, a wrong
 * `Retry-After` could stop payments for a day.
 */
const MAX_RETRY_AFTER_MS = 300_000;
/** The shortest and the longest wait after the token endpoint returned the current token again, in milliseconds. */
const SAME_TOKEN_WAIT_MS = { min: 1_000, max: 30_000 };

/**
 * The access token of one company. Concurrent callers share one token request. A background request renews the token
 * shortly before it expires. If the service rejects the token, the next caller fetches a new token.
 */
export class AccessToken {
  readonly #parts: AccessTokenParts;
  readonly #endpointBackoff = new TokenBackoff();
  /** Delays token requests while the service rejects new tokens, for example because the base URL is wrong. */
  readonly #rejectionBackoff = new TokenBackoff();
  /** The current token. `noRefreshUntil` is on the monotonic clock, in milliseconds. */
  #current: { value: string; life: TokenLife; noRefreshUntil: number } | undefined;
  #refresh: { readonly deadline: Deadline; readonly promise: Promise<string> } | undefined;
  #failure: TokenFailure | undefined;
  #closed = false;

  constructor(parts: AccessTokenParts) {
    this.#parts = parts;
  }

  /**
   * @param signal aborts only the wait of this caller; the token request continues for the other callers
   * @throws PaymentsTokenError `invalid_credentials` or `token_unavailable`
   * @throws PaymentsError `aborted` if the signal is aborted or the application is closing
   */
  async get(signal?: AbortSignal): Promise<string> {
    const token = this.#current;
    const now = this.#now();
    const left = token ? remainingMs(token.life, now) : 0;
    if (token && left > 0 && now.monotonic < token.noRefreshUntil) return token.value;
    if (token && left > token.life.softMs) return token.value;
    if (token && left > token.life.hardMs) {
      this.#refreshInBackground();
      return token.value;
    }
    try {
      return await abortable(this.#join(), signal, aborted);
    } catch (error) {
      // If the token endpoint is down, a token can be used until it expires.
      const usable = error instanceof PaymentsTokenError && this.#current === token && token;
      if (usable && remainingMs(usable.life, this.#now()) > 0) return usable.value;
      throw error;
    }
  }

  /**
   * Drops a token that the service rejected with 401, so that `get()` fetches a new one.
   *
   * Does nothing if `rejected` is not the current token. Also does nothing during the backoff after an earlier
   * rejection. Then `get()` returns the rejected token again, which shows the caller that another attempt would fail
   * too.
   */
  invalidate(rejected: string): void {
    if (this.#current?.value !== rejected) return;
    const { monotonic } = this.#now();
    if (this.#rejectionBackoff.waitMs(monotonic) > 0) return;
    this.#rejectionBackoff.fail(monotonic);
    this.#current = undefined;
    // A token request that is still running was sent before the rejection, and may return the rejected token.
    const outdated = this.#refresh;
    this.#refresh = undefined;
    outdated?.deadline.end('aborted');
  }

  /** Records that the service accepted this token, so that the next rejection causes a token request without delay. */
  accept(token: string): void {
    if (this.#current?.value === token) this.#rejectionBackoff.succeed();
  }

  /**
   * Requests a token to check the setup. Calls do not use this token. Changes neither the current token nor the time of
   * the next token request. Never rejects.
   */
  async check(): Promise<TokenCheck> {
    const { runtime, timeoutMs } = this.#parts;
    const { result, durationMs } = await this.#request(new Deadline(runtime, timeoutMs));
    if (!result.ok) return result;
    return { ok: true, lifetimeMs: result.lifetimeMs, durationMs };
  }

  close(): void {
    this.#closed = true;
    this.#current = undefined;
    this.#refresh?.deadline.end('closed');
    this.#refresh = undefined;
  }

  #now(): Instant {
    const { runtime } = this.#parts;
    return { wall: runtime.now(), monotonic: runtime.monotonic() };
  }

  #refreshInBackground(): void {
    if (this.#refresh || this.#closed) return;
    if (this.#endpointBackoff.waitMs(this.#now().monotonic) > 0) return;
    this.#start().catch((error: unknown) => {
      if (!(error instanceof PaymentsTokenError)) return;
      const line = `The token could not be renewed. The current token is used until it expires. ${error.message}`;
      const { company, logger } = this.#parts;
      logger.warn(line, { company });
    });
  }

  async #join(): Promise<string> {
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    if (this.#refresh) return this.#refresh.promise;
    const waitMs = this.#endpointBackoff.waitMs(this.#now().monotonic);
    if (this.#failure && waitMs > 0) throw this.#error(this.#failure, waitMs);
    return this.#start();
  }

  #start(): Promise<string> {
    const deadline = new Deadline(this.#parts.runtime, this.#parts.timeoutMs);
    const promise = this.#run(deadline);
    this.#refresh = { deadline, promise };
    // If no caller awaits the promise, its rejection would be unhandled, and an unhandled rejection makes Node.js exit.
    promise.catch(() => {});
    return promise;
  }

  async #run(deadline: Deadline): Promise<string> {
    const { result, sent } = await this.#request(deadline);
    if (this.#refresh?.deadline !== deadline) return this.get();
    this.#refresh = undefined;
    return result.ok ? this.#keep(result, sent) : this.#fail(result);
  }

  async #request(deadline: Deadline) {
    const sent = this.#now();
    const result = await this.#send(deadline.signal);
    deadline.release();
    const durationMs = this.#now().monotonic - sent.monotonic;
    const errorCode = result.ok ? null : result.code;
    this.#parts.onEnded?.({ company: this.#parts.company, errorCode, durationMs });
    return { result, sent, durationMs };
  }

  async #send(signal: AbortSignal): Promise<TokenResult> {
    try {
      return await abortable(this.#parts.requestToken(signal), signal, aborted);
    } catch {
      // The error is dropped, because it may contain the credentials.
      const message = signal.aborted
        ? `The token endpoint did not respond within ${this.#parts.timeoutMs} ms`
        : 'The token request failed';
      return { ok: false, code: 'token_unavailable', message };
    }
  }

  #keep({ value, lifetimeMs }: { value: string; lifetimeMs: number }, sent: Instant): string {
    this.#endpointBackoff.succeed();
    this.#failure = undefined;
    const now = this.#now();
    const life = tokenLife(sent, lifetimeMs, this.#parts.runtime.random());
    const current = this.#current;
    const left = current ? remainingMs(current.life, now) : 0;
    if (current?.value === value && left > 0) {
      // Some token endpoints return the same token until it expires. The module sends the next token request when half
      // of the remaining time has passed, not at every call.
      const soonest = Math.min(left, remainingMs(life, now));
      if (soonest < left) current.life = life;
      const { min, max } = SAME_TOKEN_WAIT_MS;
      current.noRefreshUntil = now.monotonic + Math.min(max, Math.max(min, soonest / 2));
    } else {
      this.#current = { value, life, noRefreshUntil: -Infinity };
    }
    return value;
  }

  #fail(failure: TokenFailure): never {
    this.#failure = failure;
    const { monotonic } = this.#now();
    const minimumMs = failure.code === 'invalid_credentials' ? CREDENTIALS_WAIT_MS : 0;
    const requestedMs = Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
    this.#endpointBackoff.fail(monotonic, Math.max(minimumMs, requestedMs));
    throw this.#error(failure, this.#endpointBackoff.waitMs(monotonic));
  }

  #error({ code, message, status }: TokenFailure, waitMs: number): PaymentsTokenError {
    const { company } = this.#parts;
    const retryAfterMs = Math.ceil(waitMs);
    const text = `${message}. No further token request is made for ${retryAfterMs} ms`;
    return new PaymentsTokenError(code, text, { company, status, retryAfterMs });
  }
}

/**
 * Delays token requests after failures in a row: by 0.5 s after the first, then 1 s, 2 s, up to 30 s. The wait has no
 * jitter, because callers get its exact length as `retryAfterMs`. Times are on the monotonic clock, in milliseconds.
 */
class TokenBackoff {
  readonly #backoff = new Backoff({ random: () => 0 }, { firstMs: 500, maxMs: 30_000 });
  #until = -Infinity;

  fail(now: number, atLeastMs = 0): void {
    this.#until = now + Math.max(this.#backoff.nextMs(), atLeastMs);
  }

  succeed(): void {
    this.#backoff.reset();
    this.#until = -Infinity;
  }

  waitMs(now: number): number {
    return Math.max(0, this.#until - now);
  }
}

/**
 * Caches the access token of each company. Each token belongs to one company with one base URL and one pair of
 * credentials. A company gets a new token if its base URL or credentials change.
 *
 * If the cache is full, it drops the least recently used token. The cache does not close a token that it drops, because
 * calls may be waiting for the token.
 */
export class TokenCache {
  readonly #tokens = new Map<string, AccessToken>();

  constructor(
    private readonly capacity: number,
    private readonly create: (company: ResolvedCompany) => AccessToken,
  ) {}

  get(company: ResolvedCompany): AccessToken {
    const { id, baseUrl, clientId, clientSecret } = company;
    const key = JSON.stringify([id, baseUrl, clientId, clientSecret]);
    const token = this.#tokens.get(key) ?? this.create(company);
    // A Map keeps the order of insertion, so the first key is the least recently used.
    this.#tokens.delete(key);
    this.#tokens.set(key, token);
    if (this.#tokens.size > this.capacity) {
      const [oldest] = this.#tokens.keys();
      this.#tokens.delete(oldest!);
    }
    return token;
  }

  close(): void {
    for (const token of this.#tokens.values()) token.close();
    this.#tokens.clear();
  }
}

const PATH = '/v1/auth/token';
const BODY = Buffer.from(JSON.stringify({ grant_type: 'client_credentials' }));
const MAX_BYTES = 64 * 1024;

export type TokenResult = { ok: true; value: string; lifetimeMs: number } | TokenFailure;

/** The result of a token request, without the token. */
export type TokenCheck =
  { readonly ok: true; readonly lifetimeMs: number; readonly durationMs: number } | TokenFailure;

export interface TokenFailure {
  ok: false;
  code: 'invalid_credentials' | 'token_unavailable';
  /** Cause and fix, without secrets. */
  message: string;
  status?: number | undefined;
  retryAfterMs?: number | undefined;
}

/**
 * The error of a call that was not sent, because there is no access token. The code is `invalid_credentials` if the
 * service rejected the client id and secret. The code is `token_unavailable` if the token endpoint is down, too slow,
 * or sent an unusable response.
 */
export class PaymentsTokenError extends PaymentsError {
  override readonly name = 'PaymentsTokenError';
  /** Id of the company that the token was requested for. */
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

/** Requests a token from the token endpoint. Never rejects. */
export async function requestToken(
  company: ResolvedCompany,
  send: Transport['send'],
  { runtime, logger }: Pick<AccessTokenParts, 'runtime' | 'logger'>,
  signal: AbortSignal,
): Promise<TokenResult> {
  const result = await send({
    method: 'POST',
    url: callUrl(company.baseUrl, PATH),
    headers: {
      accept: 'application/json',
      authorization: basic(company),
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
    },
    body: BODY,
    signal,
    maxBytes: MAX_BYTES,
  });
  const endpoint = `The token endpoint of company '${company.id}' at ${new URL(company.baseUrl).host}`;
  if (result.kind === 'failure') {
    const cause = result.errno ?? result.reason;
    return unavailable(
      `${endpoint} could not be reached, or its response could not be read (${cause})`,
      result.status,
    );
  }
  return isSuccess(result.status)
    ? readToken(result, endpoint, company.id, logger)
    : errorStatus(result, endpoint, runtime.now());
}

/** Returns the `Authorization` header of a token request, in UTF-8, because a secret may contain any character. */
function basic({ clientId, clientSecret }: ResolvedCompany): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64')}`;
}

function readToken(
  response: HttpResponse,
  endpoint: string,
  company: string,
  logger: Pick<ModuleLogger, 'warn'>,
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
    logger.warn(line, { company });
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
    return ', a redirect, which the module does not follow: check the base URL';
  if (status !== 404 && status !== 405) return '';
  return ` to POST ${PATH}: check the base URL. It must not end in /v1, because the module adds the path to it`;
}

function unavailable(message: string, status?: number, retryAfterMs?: number): TokenResult {
  return { ok: false, code: 'token_unavailable', message, status, retryAfterMs };
}

/**
 * Lifetime of a token whose `expires_in` is invalid, in milliseconds. This lifetime is short, because the real lifetime
 * is unknown.
 */
const FALLBACK_LIFETIME_MS = 300_000;

/**
 * The longest lifetime of a token, in milliseconds: a day. The limit protects against an `expires_in` in a wrong unit,
 * because a token is valid for about an hour.
 */
const MAX_LIFETIME_MS = 86_400_000;

/**
 * The longest soft window, in milliseconds: the time before a token expires in which a background request renews the
 * token.
 */
const SOFT_MS = 120_000;
/**
 * The longest hard window, in milliseconds: the time before a token expires in which callers wait for the new token.
 */
const HARD_MS = 30_000;

/** A point in time on the wall clock and on the monotonic clock, in milliseconds. */
export interface Instant {
  wall: number;
  monotonic: number;
}

export interface TokenLife {
  /** When the token expires, on each clock. The token has expired as soon as either clock has reached this time. */
  ends: Instant;
  /** If the token expires in fewer milliseconds than this, a background request fetches a new token. */
  softMs: number;
  /** If the token expires in fewer milliseconds than this, callers wait for the new token. */
  hardMs: number;
}

/**
 * Reads `expires_in`, a whole number of seconds. The value may be a number or, as the service sends it, a string of
 * digits.
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
 * @param sent when the token request was sent; the service counts the lifetime from a later time
 * @param random from 0 to 1; shortens `softMs` by up to a quarter, so that processes that started together do not renew
 *   their tokens at the same time
 */
export function tokenLife(sent: Instant, lifetimeMs: number, random: number): TokenLife {
  return {
    ends: { wall: sent.wall + lifetimeMs, monotonic: sent.monotonic + lifetimeMs },
    softMs: Math.min(SOFT_MS, lifetimeMs / 10) * (0.75 + random / 4),
    hardMs: Math.min(HARD_MS, lifetimeMs / 20),
  };
}

/**
 * Returns the milliseconds until a token expires: the smaller of the values of the two clocks. Either clock alone can
 * give too large a value: the wall clock may have been set back, and the monotonic clock may have stopped while the
 * machine was suspended.
 */
export function remainingMs(life: TokenLife, now: Instant): number {
  return Math.min(life.ends.wall - now.wall, life.ends.monotonic - now.monotonic);
}
