import type { PaymentsErrorCode } from '../payments.errors.js';
import { PaymentsApiError, type ApiErrorFacts } from './api.errors.js';
import type { HttpFailure } from './http/exchange.js';
import type { ScopeEnd } from './call.scope.js';

/** What is known of a call whatever becomes of it. */
export type CallFacts = ApiErrorFacts & { safe: boolean };

const ASK = 'ask GET /v1/transactions/{id} before it is repeated';

/** The error of an answer that is no 2xx. */
export function statusError(facts: CallFacts & { status: number }): PaymentsApiError {
  const code = statusCode(facts.status);
  const hint = HINTS[code];
  const doubt =
    code === 'server_error' && !facts.safe ? `; it may have been carried out: ${ASK}` : '';
  const message = `${called(facts)} was answered ${facts.status}${hint ? `: ${hint}` : ''}${doubt}`;
  return new PaymentsApiError(code, message, facts);
}

/** The error of a redirect. Of where it points only the host is told: the rest may hold anything. */
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
    `${called(facts)} was answered ${facts.status}, a redirect ${to}, which is not followed: ` +
    'it would carry the token there; check the base URL';
  return new PaymentsApiError('redirect_refused', message, facts);
}

/** The error of a call that was ended from outside: by its caller, its deadline, or the application's end. */
export function endedError(facts: CallFacts, why: ScopeEnd, mayBeSent: boolean): PaymentsApiError {
  const text = {
    aborted: 'was aborted by its caller',
    timeout: 'was not done before its deadline',
    closed: 'was ended, since the application is closing',
  }[why];
  return unanswered(facts, why === 'timeout' ? 'timeout' : 'aborted', text, mayBeSent);
}

/** The error of a try that brought no answer, or one whose body can't be used. */
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
        : "can't be decompressed";
    const message = `${called(facts)} was answered ${status}, but the answer ${problem}`;
    return new PaymentsApiError(reason, message, { ...facts, status });
  }
  const text = timedOut
    ? 'had no answer within attemptTimeoutMs'
    : `failed on its connection${errno ? ` (${errno})` : ''}`;
  return unanswered({ ...facts, status }, timedOut ? 'timeout' : reason, text, !unsent);
}

/** The error of a second 401. */
export function authenticationError(facts: CallFacts & { status: number }, host: string) {
  const message =
    `${called(facts)} was answered ${facts.status} once more: check that the base URL ` +
    `(${host}) and the credentials belong together; a sandbox token works only against the sandbox, ` +
    'and a production token only against production';
  return new PaymentsApiError('authentication_failed', message, facts);
}

/** The error of a 2xx that should have held a JSON object. */
export function invalidBodyError(facts: CallFacts & { status: number }): PaymentsApiError {
  const message = `${called(facts)} was answered ${facts.status}, but with no JSON object`;
  return new PaymentsApiError('response_invalid', message, facts);
}

const HINTS: Partial<Record<PaymentsErrorCode, string>> = {
  permission_denied: 'the company may not do this',
  validation_failed: "the service refused what was sent; the error's body says more",
  rate_limited: 'call less often, and see retryAfterMs',
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

function unanswered(
  facts: CallFacts,
  reason: PaymentsErrorCode,
  text: string,
  mayBeSent: boolean,
): PaymentsApiError {
  if (facts.safe || !mayBeSent) {
    return new PaymentsApiError(reason, `${called(facts)} ${text}`, facts);
  }
  const message = `${called(facts)} ${text}, and whether it was carried out is not known: ${ASK}`;
  return new PaymentsApiError('outcome_unknown', message, { ...facts, reason });
}

function called({ method, path, company }: CallFacts): string {
  return `${method} ${path} for company '${company}'`;
}
