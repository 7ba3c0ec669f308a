import * as api from '../../../libs/payments/dist/api/api-error.js';

const FACTS = {
  company: 'default',
  method: 'GET',
  path: '/v1/transactions/{id}',
  attempts: 1,
  safe: true,
};
const POST = { ...FACTS, method: 'POST', path: '/v1/payouts', safe: false };
const STATUSES = [400, 403, 404, 409, 418, 429, 503];

/** Example messages of calls that failed, by error code. */
export function callMessages(): Map<string, string> {
  const broken = {
    kind: 'failure',
    reason: 'connection_failed',
    errno: 'ECONNREFUSED',
    status: undefined,
  } as const;
  const errors = [
    ...STATUSES.map((status) => api.statusError({ ...FACTS, status })),
    api.authenticationError({ ...FACTS, status: 401 }, 'payments.example.com'),
    api.redirectError(
      { ...FACTS, status: 302 },
      'https://other.example.com/',
      'https://payments.example.com/',
    ),
    api.failureError(FACTS, { ...broken, unsent: true }, false),
    api.failureError(FACTS, { ...broken, unsent: true }, true),
    api.failureError(POST, { ...broken, errno: 'ECONNRESET', unsent: false }, false),
    api.failureError(
      FACTS,
      { ...broken, reason: 'response_too_large', status: 200, unsent: false },
      false,
    ),
    api.endedError(FACTS, 'aborted', false),
    api.invalidBodyError({ ...FACTS, status: 200 }),
  ];
  return new Map(errors.map(({ code, message }) => [code, message]));
}
