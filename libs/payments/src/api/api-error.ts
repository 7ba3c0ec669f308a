import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { DeadlineEnd } from '../runtime/deadline.js';
import type { HttpFailure } from './http-exchange.js';

/** Facts about a failed call, which a {@link PaymentsApiError} contains. */
export interface ApiErrorFacts {
  /** Id of the company that the call was made for. */
  company: string;
  /** HTTP method, in capitals. */
  method: string;
  /**
   * Path template, like `/v1/transactions/{id}`. If the call has no template, the value is the path with `{id}` in
   * place of each segment that contains a digit, except a version such as `v1`.
   */
  path: string;
  /** Number of requests that were started for this call. Token requests do not count. */
  attempts: number;
  /** Status of the last response, if there was one. */
  status?: number | undefined;
  /** The id that the service gave the request, if the response contains one. */
  requestId?: string | undefined;
  /** The `Retry-After` of the response in milliseconds, if it has one. */
  retryAfterMs?: number | undefined;
  /** For `outcome_unknown`: the code of the failure that ended the call. */
  reason?: PaymentsErrorCode | undefined;
  /** The response body, parsed if it is JSON; at most 64 KiB of it. */
  body?: unknown;
}

/**
 * The error of a failed call to the payments service. The `code` of this error is one of:
 *
 * - `authentication_failed` (status 401 twice), `permission_denied` (403), `not_found` (404), `conflict` (409),
 *   `validation_failed` (400 or 422), `rate_limited` (429), `server_error` (5xx), `unexpected_status` (any other);
 * - `redirect_not_followed`: the service responded with a redirect, which the module does not follow;
 * - `connection_failed`, `timeout`, `aborted`: there was no response, and the call had no effect;
 * - `outcome_unknown`: a request that changes something was sent, and there was no response (see `reason`). Check
 *   `GET /v1/transactions/{id}` before you repeat the call;
 * - `response_too_large`, `response_invalid`: the service responded with `status`, but the body cannot be used.
 *
 * The service documents only the status 401 and no error body. The other codes follow the general meaning of the
 * HTTP statuses.
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
   * The response body: the parsed value if it is JSON, otherwise its text, at most 64 KiB; `undefined` if it is empty.
   * The body may contain data of the request. This property is a getter, so that `JSON.stringify`, `util.inspect` and
   * loggers do not show the body.
   */
  get body(): unknown {
    return this.#body;
  }
}

/** Facts about a failed call, for its error. `safe` is true if the call changes nothing, so that it can be repeated. */
export type CallFacts = ApiErrorFacts & { safe: boolean };

const ADVICE = 'check GET /v1/transactions/{id} before you repeat the call';

export function statusError(facts: CallFacts & { status: number }): PaymentsApiError {
  const code = statusCode(facts.status);
  const hint = HINTS[code];
  const warning =
    code === 'server_error' && !facts.safe ? `; the call may have had an effect: ${ADVICE}` : '';
  const message = `${describeCall(facts)} got the response ${facts.status}${hint ? `: ${hint}` : ''}${warning}`;
  return new PaymentsApiError(code, message, facts);
}

/** The message names only the host of the header `Location`, because the rest may contain a secret. */
export function redirectError(
  facts: CallFacts & { status: number },
  location: string | undefined,
  url: string,
): PaymentsApiError {
  const to =
    location !== undefined && URL.canParse(location, url)
      ? `to ${new URL(location, url).host}`
      : 'without a location';
  const message =
    `${describeCall(facts)} got the response ${facts.status}, a redirect ${to}, which the module does not ` +
    'follow, because the token would be sent there; check the base URL';
  return new PaymentsApiError('redirect_not_followed', message, facts);
}

export function endedError(
  facts: CallFacts,
  reason: DeadlineEnd,
  mayHaveBeenSent: boolean,
): PaymentsApiError {
  const text = {
    aborted: 'was aborted by its caller',
    timeout: 'did not finish before its deadline',
    closed: 'was ended because the application is closing',
  }[reason];
  return noResponseError(
    facts,
    reason === 'timeout' ? 'timeout' : 'aborted',
    text,
    mayHaveBeenSent,
  );
}

export function failureError(
  facts: CallFacts,
  failure: HttpFailure,
  timedOut: boolean,
): PaymentsApiError {
  const { reason, errno, status, unsent } = failure;
  if (!timedOut && status !== undefined && reason !== 'connection_failed') {
    const problem =
      reason === 'response_too_large'
        ? 'is larger than maxResponseBytes allows'
        : 'cannot be decompressed';
    const message = `${describeCall(facts)} got the response ${status}, but its body ${problem}`;
    return new PaymentsApiError(reason, message, { ...facts, status });
  }
  const text = timedOut
    ? 'got no response within attemptTimeoutMs'
    : `failed because of its connection${errno ? ` (${errno})` : ''}`;
  return noResponseError({ ...facts, status }, timedOut ? 'timeout' : reason, text, !unsent);
}

/** Creates the error for a call to which the service responded twice with 401. */
export function authenticationError(facts: CallFacts & { status: number }, host: string) {
  const message =
    `${describeCall(facts)} got the response ${facts.status} again: check that the base URL ` +
    `(${host}) and the credentials belong together; a sandbox token works only against the sandbox, ` +
    'and a production token only against production';
  return new PaymentsApiError('authentication_failed', message, facts);
}

export function invalidBodyError(facts: CallFacts & { status: number }): PaymentsApiError {
  const message = `${describeCall(facts)} got the response ${facts.status} without a JSON object`;
  return new PaymentsApiError('response_invalid', message, facts);
}

const HINTS: Partial<Record<PaymentsErrorCode, string>> = {
  permission_denied: 'the company is not permitted to do this',
  validation_failed: "the service rejected the request; see the error's body",
  rate_limited: 'call less often; see retryAfterMs',
};

function statusCode(status: number): PaymentsErrorCode {
  switch (status) {
    case 400:
    case 422:
      return 'validation_failed';
    case 401:
      return 'authentication_failed';
    case 403:
      return 'permission_denied';
    case 404:
      return 'not_found';
    case 409:
      return 'conflict';
    case 429:
      return 'rate_limited';
    default:
      return status >= 500 && status <= 599 ? 'server_error' : 'unexpected_status';
  }
}

function noResponseError(
  facts: CallFacts,
  reason: PaymentsErrorCode,
  text: string,
  mayHaveBeenSent: boolean,
): PaymentsApiError {
  if (facts.safe || !mayHaveBeenSent) {
    return new PaymentsApiError(reason, `${describeCall(facts)} ${text}`, facts);
  }
  const message = `${describeCall(facts)} ${text}, and it is unknown whether the call had an effect: ${ADVICE}`;
  return new PaymentsApiError('outcome_unknown', message, { ...facts, reason });
}

function describeCall({ method, path, company }: CallFacts): string {
  return `${method} ${path} for company '${company}'`;
}
