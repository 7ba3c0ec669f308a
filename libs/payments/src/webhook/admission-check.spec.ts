import { describe, expect, it } from '@jest/globals';
import { answerError } from './webhook-answer.js';
import { runCheck } from './admission-check.js';
import type { AdmissionCheck, AdmissionRequest } from './admission-check.js';

const request: AdmissionRequest = {
  company: 'acme',
  url: '/webhooks/payments/acme',
  headers: {},
  address: '203.0.113.7',
  request: {},
};
const run = async (check: unknown): Promise<void> => runCheck(check as AdmissionCheck, request);

/** The answer to a request that the check did not admit, and what the log says of it. */
async function refusal(check: unknown): Promise<Record<string, unknown>> {
  const error: unknown = await run(check).then(
    () => undefined,
    (error: unknown) => error,
  );
  const { status, retryAfterSeconds, body } = answerError(error);
  return { status, retryAfterSeconds, ...body, reason: (error as { reason?: string }).reason };
}

describe('runCheck', () => {
  it('SE-05 admits a request if the check returns nothing, at once or later', async () => {
    expect(runCheck(() => undefined, request)).toBeUndefined();
    await expect(run(async () => undefined)).resolves.toBeUndefined();
  });

  it('SE-05 shows the check the request', async () => {
    let seen: unknown;
    await run((shown: unknown) => void (seen = shown));
    expect(seen).toBe(request);
  });

  it.each([
    [{}, 403, undefined, 'The application rejected the request.'],
    [{ status: 429, retryAfterSeconds: 30 }, 429, 30, 'The application rejected the request.'],
    [{ status: 400, message: 'No.' }, 400, undefined, 'No.'],
    [{ status: 599, retryAfterSeconds: 0 }, 599, 0, 'The application rejected the request.'],
  ])('SE-05 refuses as %j says', async (answer, status, retryAfterSeconds, message) => {
    const expected = { status, retryAfterSeconds, code: 'request_rejected', message };
    expect(await refusal(() => answer)).toMatchObject(expected);
    expect(await refusal(async () => answer)).toMatchObject(expected);
  });

  const throwing = {
    get status(): number {
      throw new Error('a getter');
    },
  };
  it.each([
    ['null', null, /neither undefined nor a refusal/],
    ['true', true, /neither undefined nor a refusal/],
    ['false', false, /neither undefined nor a refusal/],
    ['a text', 'no', /neither undefined nor a refusal/],
    ['status 200', { status: 200 }, /"status".*400 to 599/],
    ['status 302', { status: 302 }, /"status"/],
    ['status 600', { status: 600 }, /"status"/],
    ['a status as text', { status: '403' }, /"status"/],
    ['a negative wait', { retryAfterSeconds: -1 }, /"retryAfterSeconds".*0 to 86400/],
    ['half a second', { retryAfterSeconds: 0.5 }, /"retryAfterSeconds"/],
    ['a message that is an object', { message: {} }, /"message"/],
    ['an object whose getter throws', throwing, /a getter/],
  ])('SE-05 refuses with 503 if the check returns %s', async (_, answer, reason) => {
    const expected = {
      status: 503,
      code: 'request_rejected',
      reason: expect.stringMatching(reason),
    };
    expect(await refusal(() => answer)).toMatchObject(expected);
    expect(await refusal(async () => answer)).toMatchObject(expected);
  });

  it.each([
    [
      'throws',
      () => {
        throw new TypeError('the cache is down');
      },
      /TypeError: the cache is down/,
    ],
    ['rejects', async () => Promise.reject(new Error('no route')), /Error: no route/],
    ['rejects with undefined', async () => Promise.reject(undefined), /undefined was thrown/],
  ])(
    'SE-05 refuses with 503 if the check %s, and the cause is only for the log',
    async (_, check, reason) => {
      const { message, ...rest } = await refusal(check);
      expect(rest).toMatchObject({
        status: 503,
        code: 'request_rejected',
        reason: expect.stringMatching(reason),
      });
      expect(message).toBe("The application's own check of the request failed; the log says why.");
    },
  );
});
