import type { Logger } from '@nestjs/common';
import { LogLine } from '../../errors/log-line.js';
import { PaymentsError } from '../../errors/payments-error.js';
import { backoffMs } from '../../runtime/backoff.js';
import { abortable, Deadline } from '../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ObserverInfo } from '../../telemetry/payments-observer.js';
import {
  PaymentsTokenError,
  remainingMs,
  tokenLife,
  type Instant,
  type TokenFailure,
  type TokenLife,
  type TokenResult,
} from './token-request.js';

/** Dependencies of an {@link AccessToken}. */
export interface AccessTokenParts {
  /** Id of the company, for errors and warnings. */
  company: string;
  runtime: PaymentsRuntime;
  logger: Pick<Logger, 'warn'>;
  /** Sends one token request, and aborts it if the signal is aborted. Should not reject. */
  requestToken: (signal: AbortSignal) => Promise<TokenResult>;
  /** Time limit of a token request, in milliseconds. */
  timeoutMs: number;
  /** Called when a token request has ended. */
  onEnded?: (info: ObserverInfo['tokenFetched']) => void;
}

const aborted = (): PaymentsError => new PaymentsError('aborted', 'The wait was aborted');

/** A token request that is under way. All callers share its promise. */
interface Refresh {
  readonly deadline: Deadline;
  promise: Promise<string>;
}

/** Milliseconds without a token request after the credentials were rejected: a person has to fix them. */
const CREDENTIALS_WAIT_MS = 30_000;
/** The longest `Retry-After` that is obeyed, in milliseconds: a wrong value must not stop payments for a day. */
const MAX_RETRY_AFTER_MS = 300_000;
/** Bounds of the wait after the endpoint returned the current token again, in milliseconds. */
const SAME_TOKEN_WAIT_MS = { min: 1_000, max: 30_000 };

/**
 * The access token of one company. Concurrent callers share one token request. A background request renews the token
 * shortly before it expires. If the service rejects the token, the next caller fetches a new one.
 */
export class AccessToken {
  readonly #parts: AccessTokenParts;
  /** Delays token requests after failures of the token endpoint. */
  readonly #endpointBackoff = new TokenBackoff();
  /** Delays token requests while the service rejects new tokens, for example because the base URL is wrong. */
  readonly #rejectionBackoff = new TokenBackoff();
  /** `noRefreshUntil` is on the monotonic clock, in milliseconds. */
  #current: { value: string; life: TokenLife; noRefreshUntil: number } | undefined;
  #refresh: Refresh | undefined;
  #failure: TokenFailure | undefined;
  #closed = false;

  constructor(parts: AccessTokenParts) {
    this.#parts = parts;
  }

  /**
   * Returns a token that can be used now.
   *
   * @param signal ends only this caller's wait; the token request continues for the other callers
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
   * Does nothing if it is not the current token. Does nothing either during the backoff after an earlier rejection:
   * then `get()` returns the same token, and the caller knows that another attempt would fail too.
   */
  invalidate(rejected: string): void {
    if (this.#current?.value !== rejected) return;
    const { monotonic } = this.#now();
    if (this.#rejectionBackoff.waitMs(monotonic) > 0) return;
    this.#rejectionBackoff.fail(monotonic);
    this.#current = undefined;
    // A request that is under way was sent before the rejection, and may return the same token.
    const outdated = this.#refresh;
    this.#refresh = undefined;
    outdated?.deadline.end('aborted');
  }

  /** Records that the service accepted this token, so that its next rejection causes a token request without delay. */
  accept(token: string): void {
    if (this.#current?.value === token) this.#rejectionBackoff.succeed();
  }

  /** Aborts the request under way, cancels its timer and rejects all further calls. */
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
    this.#start().promise.catch((error: unknown) => {
      if (!(error instanceof PaymentsTokenError)) return;
      const line = `The token could not be renewed. The current token is used until it expires: ${error.message}`;
      const { company, logger } = this.#parts;
      logger.warn(new LogLine(line, { company }));
    });
  }

  /** Waits for the request under way or starts one. Throws if a backoff forbids a request now. */
  async #join(): Promise<string> {
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    if (this.#refresh) return this.#refresh.promise;
    const waitMs = this.#endpointBackoff.waitMs(this.#now().monotonic);
    if (this.#failure && waitMs > 0) throw this.#error(this.#failure, waitMs);
    return this.#start().promise;
  }

  #start(): Refresh {
    const { runtime, timeoutMs } = this.#parts;
    const deadline = new Deadline(runtime, timeoutMs);
    const refresh: Refresh = { deadline, promise: Promise.resolve('') };
    this.#refresh = refresh;
    refresh.promise = this.#run(refresh);
    // Without a caller, nothing else would handle the rejection, and it would end the process.
    refresh.promise.catch(() => {});
    return refresh;
  }

  async #run(refresh: Refresh): Promise<string> {
    const sent = this.#now();
    const result = await this.#request(refresh.deadline.signal);
    refresh.deadline.release();
    this.#parts.onEnded?.({
      company: this.#parts.company,
      errorCode: result.ok ? null : result.code,
      durationMs: this.#now().monotonic - sent.monotonic,
    });
    if (this.#refresh !== refresh) return this.get();
    this.#refresh = undefined;
    return result.ok ? this.#keep(result, sent) : this.#fail(result);
  }

  async #request(signal: AbortSignal): Promise<TokenResult> {
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
      // Some endpoints return the same token until it expires. The next request is sent when half of the remaining time
      // has passed, not at every call.
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

const BACKOFF = Object.freeze({ firstMs: 500, maxMs: 30_000 });

/**
 * Delays token requests after each failure in a row: by 0.5 s, then 1 s, 2 s, up to 30 s. There is no jitter, because
 * callers get the wait as `retryAfterMs`. Times are on the monotonic clock, in milliseconds.
 */
class TokenBackoff {
  #failures = 0;
  #until = -Infinity;

  /** Records a failure. The wait is at least `atLeastMs`. */
  fail(now: number, atLeastMs = 0): void {
    this.#failures += 1;
    this.#until = now + Math.max(backoffMs(BACKOFF, this.#failures, 0), atLeastMs);
  }

  /** Records a success: requests can be sent now, and the next failure counts as the first. */
  succeed(): void {
    this.#failures = 0;
    this.#until = -Infinity;
  }

  /** Milliseconds until a request can be sent; 0 if it can be sent now. */
  waitMs(now: number): number {
    return Math.max(0, this.#until - now);
  }
}
