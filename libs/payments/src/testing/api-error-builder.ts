import { PaymentsApiError, statusError } from '../api/call/api-error.js';
import type { ApiErrorFacts } from '../api/call/api-error.js';
import { DEFAULT_COMPANY } from '../companies/company.js';
import type { PaymentsErrorCode } from '../errors/payments-error.js';

/**
 * Builds the error of a failed call, as `PaymentsApiService` rejects with it.
 *
 * @param cause the status of the response, which gives the code (404: `not_found`), or the code of a call without
 *   a response, such as `timeout`, `connection_failed` or `outcome_unknown`.
 * @param facts what differs from one attempt of `GET /v1/transactions/{id}` for company `default`.
 * @example
 * ```ts
 * payments.answer('GET', '/v1/transactions/t-9', apiError(404));
 * payments.answer('POST', '/v1/payouts', apiError('outcome_unknown', { method: 'POST', path: '/v1/payouts' }));
 * ```
 */
export function apiError(
  cause: number | PaymentsErrorCode,
  facts: Partial<ApiErrorFacts> = {},
): PaymentsApiError {
  const known: ApiErrorFacts = {
    company: DEFAULT_COMPANY,
    method: 'GET',
    path: '/v1/transactions/{id}',
    attempts: 1,
    ...facts,
  };
  const { method, path } = known;
  if (typeof cause === 'number') {
    return statusError({ ...known, status: cause, safe: method === 'GET' || method === 'HEAD' });
  }
  return new PaymentsApiError(cause, `${method} ${path} failed: ${cause}`, known);
}
