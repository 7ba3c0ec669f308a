import { PaymentsError, type PaymentsErrorCode } from '../payments.errors.js';

/** What a {@link PaymentsApiError} knows of the call that failed. */
export interface ApiErrorFacts {
  /** Id of the company the call was made for. */
  company: string;
  /** HTTP method, in capitals. */
  method: string;
  /** Path template, like `/v1/transactions/{id}`, or the path where the call gave none. */
  path: string;
  /** Requests sent, or begun, for this call; the token's own are not counted. */
  attempts: number;
  /** Status of the last answer, where one came. */
  status?: number | undefined;
  /** What the service calls this request in its own log, where it said so. */
  requestId?: string | undefined;
  /** What the answer's `Retry-After` asks for, in milliseconds, where it had one. */
  retryAfterMs?: number | undefined;
  /** For `outcome_unknown`: what ended the call. */
  reason?: PaymentsErrorCode | undefined;
  /** The answer's body, parsed where it was JSON, at most 64 KiB of it. */
  body?: unknown;
}

/**
 * A call to the payments service that failed. `code` says how:
 *
 * - `authentication_failed` 401 twice, `permission_denied` 403, `not_found` 404, `conflict` 409,
 *   `validation_failed` 400 and 422, `rate_limited` 429, `server_error` 5xx, `unexpected_status` any other;
 * - `redirect_refused`: the service answered with a redirect, which is not followed;
 * - `connection_failed`, `timeout`, `aborted`: no answer, and nothing can have been carried out;
 * - `outcome_unknown`: a request that changes something was sent and its answer never came (`reason` says
 *   why). Ask `GET /v1/transactions/{id}` before it is repeated;
 * - `response_too_large`, `response_invalid`: the service answered `status`, but its body can't be used.
 *
 * The service documents no status but 401 and no error body, so the other codes are the general
 * meaning of HTTP's own.
 */
export class PaymentsApiError extends PaymentsError implements Omit<ApiErrorFacts, 'body'> {
  override readonly name = 'PaymentsApiError';
  readonly company: string;
  readonly method: string;
  readonly path: string;
  readonly attempts: number;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly reason: PaymentsErrorCode | undefined;
  readonly #body: unknown;

  constructor(code: PaymentsErrorCode, message: string, facts: ApiErrorFacts) {
    super(code, message);
    this.company = facts.company;
    this.method = facts.method;
    this.path = facts.path;
    this.attempts = facts.attempts;
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.retryAfterMs = facts.retryAfterMs;
    this.reason = facts.reason;
    this.#body = facts.body;
  }

  /**
   * The answer's body: parsed where it was JSON, else its text, at most 64 KiB; `undefined` where there was
   * none. Behind a getter, so that neither `JSON.stringify` nor `util.inspect` nor a logger shows it: it may
   * repeat what was sent.
   */
  get body(): unknown {
    return this.#body;
  }
}

/** Facts of a token that could not be had. */
export interface TokenErrorFacts {
  /** Id of the company whose token it is. */
  company: string;
  /** Status of the token endpoint's answer, where one came. */
  status?: number | undefined;
  /** How long no further token request is made, in milliseconds. */
  retryAfterMs: number;
}

/**
 * No access token could be had, so the call was not made. `invalid_credentials`: the service refused client id
 * and secret. `token_unavailable`: the token endpoint is down, slow or not making sense.
 */
export class PaymentsTokenError extends PaymentsError implements TokenErrorFacts {
  override readonly name = 'PaymentsTokenError';
  readonly company: string;
  readonly status: number | undefined;
  readonly retryAfterMs: number;

  constructor(
    code: 'invalid_credentials' | 'token_unavailable',
    message: string,
    facts: TokenErrorFacts,
  ) {
    super(code, message);
    this.company = facts.company;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
  }
}
