import { PaymentsApiError } from '../api/api-error.js';
import type { PaymentsApi } from '../api/payments-api.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import type { RequestState } from '../inbox/store/expectation-store.js';

/**
 * The codes of errors that prove that the service accepted no request, so that no payment exists. After any other error
 * of a request, the payment may exist: also after 408, 409, 429, every redirect, and every other status that the contract
 * of the service does not show.
 *
 * - `invalid_credentials`, `token_unavailable`: there was no token, so the request was not sent.
 * - `company_unknown`, `directory_unavailable`: the company has no credentials, or they could not be looked up, so the
 *   request was not sent.
 * - `connection_failed`, `timeout`, `aborted`: no byte of a request that changes something can have reached the service;
 *   otherwise the code is `outcome_unknown`.
 * - `authentication_failed`: the service rejected the token with 401, as its contract shows.
 */
export const NOT_REQUESTED_CODES: readonly PaymentsErrorCode[] = Object.freeze([
  'invalid_credentials',
  'token_unavailable',
  'company_unknown',
  'directory_unavailable',
  'connection_failed',
  'timeout',
  'aborted',
  'authentication_failed',
] as const);

/** What is known about the effect of calls that change something, from the best to the worst. `never`: they had none. */
const EFFECTS = ['never', 'answered', 'unknown'] as const;
type Effect = (typeof EFFECTS)[number];

function effectOf(error: unknown): Effect {
  if (error instanceof PaymentsError && NOT_REQUESTED_CODES.includes(error.code)) return 'never';
  const status = error instanceof PaymentsApiError ? error.status : undefined;
  // The service may have accepted a request before it responded with 408, a redirect or 5xx.
  const isAnswer = status !== undefined && status >= 400 && status <= 499 && status !== 408;
  return isAnswer ? 'answered' : 'unknown';
}

const CHANGING: readonly string[] = ['post', 'put', 'patch', 'delete', 'request'];

/**
 * Wraps an API. `effectAfter(error, before)` returns what is known after a request that failed with this error. A request
 * for a payment can consist of several calls, of which only the last one fails. `before` is what was known before this request. It
 * counts too, because an error which proves that this request had no effect proves nothing about an earlier request.
 */
export function trackChanges(api: PaymentsApi): {
  readonly api: PaymentsApi;
  effectAfter(error: unknown, before: RequestState): Effect;
} {
  const effects: Effect[] = [];
  const tracked = new Proxy(api, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...call: unknown[]): Promise<unknown> => {
        const reads = name === 'request' && (call[0] === 'GET' || call[0] === 'HEAD');
        if (!CHANGING.includes(String(name)) || reads) return value.apply(target, call);
        // Also after a success: the payment, or a part of it, exists then.
        const index = effects.push('unknown') - 1;
        try {
          return await value.apply(target, call);
        } catch (error) {
          effects[index] = effectOf(error);
          throw error;
        }
      };
    },
  });
  return {
    api: tracked,
    effectAfter: (error, before) => {
      const known: readonly RequestState[] = [before, ...effects, effectOf(error)];
      return EFFECTS.findLast((effect) => known.includes(effect)) ?? 'unknown';
    },
  };
}
