import { PaymentsError } from '../payments.errors.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { PaymentsTokenError } from './api.errors.js';
import type { ApiLogger } from './api.logger.js';
import { abortable } from './abortable.promise.js';
import { TokenGate } from './token.gate.js';
import { remainingMs, tokenLife, type Instant, type TokenLife } from './token.lifetime.js';

/** What one token request came to. */
export type TokenOutcome =
  | { ok: true; value: string; lifetimeMs: number }
  | {
      ok: false;
      code: 'invalid_credentials' | 'token_unavailable';
      /** Cause and mend, for people. No secret in it. */
      message: string;
      status?: number | undefined;
      /** What the answer's `Retry-After` asked for, in milliseconds. */
      retryAfterMs?: number | undefined;
    };

type TokenFailure = Extract<TokenOutcome, { ok: false }>;

/** What an {@link AccessToken} is made of. */
export interface AccessTokenParts {
  /** Id of the company, for errors and warnings. */
  company: string;
  runtime: PaymentsRuntime;
  logger: ApiLogger;
  /** Makes one token request, and ends when the signal does. Should not reject. */
  requestToken: (signal: AbortSignal) => Promise<TokenOutcome>;
  /** The longest a token request may take, in milliseconds. */
  timeoutMs: number;
}

/** One token request under way, and everybody who waits for it. */
interface Refresh {
  readonly abort: AbortController;
  promise: Promise<string>;
}

/** How long wrong credentials are held back (nobody mends them faster), in milliseconds. */
const CREDENTIALS_HOLD_MS = 30_000;
/** The longest `Retry-After` of the token endpoint that is obeyed: a slip there must not stop payments for a day. */
const MAX_RETRY_AFTER_MS = 300_000;
/** Bounds of the wait after the endpoint answered with the token we have, in milliseconds. */
const SAME_TOKEN_WAIT_MS = { min: 1_000, max: 30_000 };

/**
 * One company's access token: fetched once for everybody who asks at the same time, renewed in the
 * background shortly before it ends, fetched anew when the service rejected it.
 */
export class AccessToken {
  readonly #parts: AccessTokenParts;
  /** Shut while the token endpoint fails. */
  readonly #endpoint = new TokenGate();
  /** Shut while the service keeps rejecting tokens that were just fetched: a wrong host, say. */
  readonly #rejections = new TokenGate();
  #current: { value: string; life: TokenLife; quietUntil: number } | undefined;
  #refresh: Refresh | undefined;
  #failure: TokenFailure | undefined;
  #closed = false;

  constructor(parts: AccessTokenParts) {
    this.#parts = parts;
  }

  /**
   * A token that is good to use now.
   *
   * @param signal ends this caller's wait only; the request goes on for the others
   * @throws PaymentsTokenError `invalid_credentials` or `token_unavailable`
   * @throws PaymentsError `aborted`, where the signal ended the wait or the application is closing
   */
  async get(signal?: AbortSignal): Promise<string> {
    const token = this.#current;
    const now = this.#now();
    const left = token ? remainingMs(token.life, now) : 0;
    if (token && left > 0 && now.monotonic < token.quietUntil) return token.value;
    if (token && left > token.life.softMs) return token.value;
    if (token && left > token.life.hardMs) {
      this.#refreshInBackground();
      return token.value;
    }
    try {
      return await abortable(this.#join(), signal);
    } catch (error) {
      // Nearly over is not over: a token endpoint that is down doesn't stop calls that can still be made.
      const usable = error instanceof PaymentsTokenError && this.#current === token && token;
      if (usable && remainingMs(usable.life, this.#now()) > 0) return usable.value;
      throw error;
    }
  }

  /**
   * Says that the service answered 401 to this token. Only the token in use is dropped: a 401 for an older one
   * is news from the past. Nor is one dropped that the service rejects again and again as soon as it is
   * fetched; then `get()` gives the same token, and the caller can tell that another try is of no use.
   */
  invalidate(rejected: string): void {
    if (this.#current?.value !== rejected) return;
    const { monotonic } = this.#now();
    if (this.#rejections.waitMs(monotonic) > 0) return;
    this.#rejections.fail(monotonic);
    this.#current = undefined;
    // A request that is under way was made before this was known, and may bring the same token.
    const superseded = this.#refresh;
    this.#refresh = undefined;
    superseded?.abort.abort();
  }

  /** Says that the service took this token, so that its next rejection is believed at once. */
  accept(token: string): void {
    if (this.#current?.value === token) this.#rejections.succeed();
  }

  /** Ends a request under way, with its timer, and refuses every further one. */
  close(): void {
    this.#closed = true;
    this.#current = undefined;
    this.#refresh?.abort.abort();
    this.#refresh = undefined;
  }

  #now(): Instant {
    const { runtime } = this.#parts;
    return { wall: runtime.now(), monotonic: runtime.monotonic() };
  }

  #refreshInBackground(): void {
    if (this.#refresh || this.#closed || this.#endpoint.waitMs(this.#now().monotonic) > 0) return;
    this.#start().promise.catch((error: unknown) => {
      if (!(error instanceof PaymentsTokenError)) return;
      this.#parts.logger.warn(
        `Renewing the token failed, the current one still serves: ${error.message}`,
      );
    });
  }

  /** The request under way, or a new one, or the reason why none is made. */
  async #join(): Promise<string> {
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    if (this.#refresh) return this.#refresh.promise;
    const waitMs = this.#endpoint.waitMs(this.#now().monotonic);
    if (this.#failure && waitMs > 0) throw this.#error(this.#failure, waitMs);
    return this.#start().promise;
  }

  #start(): Refresh {
    const abort = new AbortController();
    const refresh: Refresh = { abort, promise: Promise.resolve('') };
    this.#refresh = refresh;
    refresh.promise = this.#run(refresh);
    // Those who wait hear of a failure; where nobody waits, it must not end the process.
    refresh.promise.catch(() => {});
    return refresh;
  }

  async #run(refresh: Refresh): Promise<string> {
    const { runtime, timeoutMs } = this.#parts;
    const sent = this.#now();
    const stopTimer = runtime.schedule(timeoutMs, () => refresh.abort.abort());
    const outcome = await this.#request(refresh.abort.signal);
    stopTimer();
    if (this.#refresh !== refresh) return this.get();
    this.#refresh = undefined;
    return outcome.ok ? this.#keep(outcome, sent) : this.#fail(outcome);
  }

  async #request(signal: AbortSignal): Promise<TokenOutcome> {
    try {
      return await abortable(this.#parts.requestToken(signal), signal);
    } catch {
      // Whatever else it was, it may hold the credentials: it ends here.
      const message = signal.aborted
        ? `The token endpoint gave no answer within ${this.#parts.timeoutMs} ms`
        : 'The token request failed';
      return { ok: false, code: 'token_unavailable', message };
    }
  }

  #keep({ value, lifetimeMs }: { value: string; lifetimeMs: number }, sent: Instant): string {
    this.#endpoint.succeed();
    this.#failure = undefined;
    const now = this.#now();
    const life = tokenLife(sent, lifetimeMs, this.#parts.runtime.random());
    const held = this.#current;
    const left = held ? remainingMs(held.life, now) : 0;
    if (held?.value === value && left > 0) {
      // The endpoint gives one token until it ends, and its end doesn't move with each answer. Ask again when
      // half of what is left has passed, not at every call.
      const soonest = Math.min(left, remainingMs(life, now));
      if (soonest < left) held.life = life;
      const { min, max } = SAME_TOKEN_WAIT_MS;
      held.quietUntil = now.monotonic + Math.min(max, Math.max(min, soonest / 2));
    } else {
      this.#current = { value, life, quietUntil: -Infinity };
    }
    return value;
  }

  #fail(failure: TokenFailure): never {
    this.#failure = failure;
    const { monotonic } = this.#now();
    const hold = failure.code === 'invalid_credentials' ? CREDENTIALS_HOLD_MS : 0;
    const asked = Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
    this.#endpoint.fail(monotonic, Math.max(hold, asked));
    throw this.#error(failure, this.#endpoint.waitMs(monotonic));
  }

  #error({ code, message, status }: TokenFailure, waitMs: number): PaymentsTokenError {
    const retryAfterMs = Math.ceil(waitMs);
    const next = `${message}. No further token request is made for ${retryAfterMs} ms`;
    return new PaymentsTokenError(code, next, {
      company: this.#parts.company,
      status,
      retryAfterMs,
    });
  }
}
