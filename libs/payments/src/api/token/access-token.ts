import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { abortable } from '../../runtime/abortable.js';
import { Deadline } from '../../runtime/deadline.js';
import type { ApiLogger } from '../request-observer.js';
import { TokenBackoff } from './token-backoff.js';
import { PaymentsTokenError } from './token-error.js';
import { remainingMs, tokenLife, type Instant, type TokenLife } from './token-lifetime.js';
import type { TokenFailure, TokenOutcome } from './token-request.js';

/** What an {@link AccessToken} needs. */
export interface AccessTokenParts {
  /** Id of the company, for errors and warnings. */
  company: string;
  runtime: PaymentsRuntime;
  logger: ApiLogger;
  /** Sends one token request, and ends it if the signal is aborted. Should not reject. */
  requestToken: (signal: AbortSignal) => Promise<TokenOutcome>;
  /** The longest a token request may take, in milliseconds. */
  timeoutMs: number;
}

/** A token request that is under way. All callers share it. */
interface Refresh {
  readonly deadline: Deadline;
  promise: Promise<string>;
}

/** How long no request is made after the credentials were rejected, in milliseconds: a person has to fix them. */
const CREDENTIALS_WAIT_MS = 30_000;
/** The longest `Retry-After` of the token endpoint that is obeyed: a wrong value must not stop payments for a day. */
const MAX_RETRY_AFTER_MS = 300_000;
/** Bounds of the wait after the endpoint returned the current token again, in milliseconds. */
const SAME_TOKEN_WAIT_MS = { min: 1_000, max: 30_000 };

/**
 * The access token of one company. Concurrent callers share one request. It is renewed in the background shortly
 * before it expires, and replaced if the service rejects it.
 */
export class AccessToken {
  readonly #parts: AccessTokenParts;
  /** After failures of the token endpoint. */
  readonly #endpointBackoff = new TokenBackoff();
  /** While the service rejects tokens that were just fetched, for example because the base URL is wrong. */
  readonly #rejectionBackoff = new TokenBackoff();
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
   * @param signal ends only this caller's wait; the request goes on for the others
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
      return await abortable(this.#join(), signal);
    } catch (error) {
      // A token that expires soon can still be used if the token endpoint is down.
      const usable = error instanceof PaymentsTokenError && this.#current === token && token;
      if (usable && remainingMs(usable.life, this.#now()) > 0) return usable.value;
      throw error;
    }
  }

  /**
   * Reports that the service answered 401 to this token. The current token is dropped, unless the 401 is for an
   * older one, or tokens were rejected repeatedly right after they were fetched: then `get()` returns the same
   * token, which shows the caller that another attempt would fail too.
   */
  invalidate(rejected: string): void {
    if (this.#current?.value !== rejected) return;
    const { monotonic } = this.#now();
    if (this.#rejectionBackoff.waitMs(monotonic) > 0) return;
    this.#rejectionBackoff.fail(monotonic);
    this.#current = undefined;
    // A request that is under way was sent before the rejection, and may return the same token.
    const superseded = this.#refresh;
    this.#refresh = undefined;
    superseded?.deadline.end('aborted');
  }

  /** Reports that the service accepted this token, so its next rejection replaces it at once. */
  accept(token: string): void {
    if (this.#current?.value === token) this.#rejectionBackoff.succeed();
  }

  /** Ends the request under way, with its timer, and rejects all further calls. */
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
      this.#parts.logger.warn(
        `Renewing the token failed, the current one is still used: ${error.message}`,
      );
    });
  }

  /** Waits for the request under way or for a new one, or throws if none may be made now. */
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
    // Callers get the failure. Without a caller, the rejection must not end the process.
    refresh.promise.catch(() => {});
    return refresh;
  }

  async #run(refresh: Refresh): Promise<string> {
    const sent = this.#now();
    const outcome = await this.#request(refresh.deadline.signal);
    refresh.deadline.release();
    if (this.#refresh !== refresh) return this.get();
    this.#refresh = undefined;
    return outcome.ok ? this.#keep(outcome, sent) : this.#fail(outcome);
  }

  async #request(signal: AbortSignal): Promise<TokenOutcome> {
    try {
      return await abortable(this.#parts.requestToken(signal), signal);
    } catch {
      // The error is dropped, because it may contain the credentials.
      const message = signal.aborted
        ? `The token endpoint gave no answer within ${this.#parts.timeoutMs} ms`
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
      // Some endpoints return one token until it expires. The next request is made when half of the remaining time
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
