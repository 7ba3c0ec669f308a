import { describe, expect, it } from '@jest/globals';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { requireFittingLength, requirePlainJson, runCheck } from './admission.js';
import type { AdmissionCheck, AdmissionRequest } from './webhook-options.js';
import { rejectionResponse } from './webhook-rejection.js';

const request: AdmissionRequest = {
  company: 'acme',
  url: '/webhooks/payments/acme',
  headers: {},
  address: '203.0.113.7',
  request: {},
};
const run = async (check: unknown): Promise<void> => runCheck(check as AdmissionCheck, request);

/** The response to a request that the check did not admit, and the reason that is logged. */
async function rejection(check: unknown): Promise<Record<string, unknown>> {
  const error: unknown = await run(check).then(
    () => undefined,
    (error: unknown) => error,
  );
  const { status, retryAfterSeconds, body } = rejectionResponse(error);
  return { status, retryAfterSeconds, ...body, reason: (error as { reason?: string }).reason };
}

describe('runCheck', () => {
  it('SE-05 runCheck() admits a request if the check returns nothing, or a promise of nothing', async () => {
    expect(runCheck(() => undefined, request)).toBeUndefined();
    await expect(run(async () => undefined)).resolves.toBeUndefined();
  });

  it('SE-05 runCheck() passes the request to the check', async () => {
    let passed: unknown;
    await run((argument: unknown) => void (passed = argument));
    expect(passed).toBe(request);
  });

  it.each([
    [{}, 403, undefined, 'The application rejected the request.'],
    [{ status: 429, retryAfterSeconds: 30 }, 429, 30, 'The application rejected the request.'],
    [{ status: 400, message: 'No.' }, 400, undefined, 'No.'],
    [{ status: 599, retryAfterSeconds: 0 }, 599, 0, 'The application rejected the request.'],
  ])(
    'SE-05 runCheck() rejects a request with the status, wait and message of %j',
    async (result, status, retryAfterSeconds, message) => {
      const expected = { status, retryAfterSeconds, code: 'request_rejected', message };
      expect(await rejection(() => result)).toMatchObject(expected);
      expect(await rejection(async () => result)).toMatchObject(expected);
    },
  );

  const throwing = {
    get status(): number {
      throw new Error('a getter');
    },
  };
  it.each([
    ['null', null, /neither undefined nor an AdmissionRejection/],
    ['true', true, /neither undefined nor an AdmissionRejection/],
    ['false', false, /neither undefined nor an AdmissionRejection/],
    ['a text', 'no', /neither undefined nor an AdmissionRejection/],
    ['status 200', { status: 200 }, /"status".*400 to 599/],
    ['status 302', { status: 302 }, /"status"/],
    ['status 600', { status: 600 }, /"status"/],
    ['a status as text', { status: '403' }, /"status"/],
    ['a negative wait', { retryAfterSeconds: -1 }, /"retryAfterSeconds".*0 to 86400/],
    ['half a second', { retryAfterSeconds: 0.5 }, /"retryAfterSeconds"/],
    ['a message that is an object', { message: {} }, /"message"/],
    ['an object whose getter throws', throwing, /a getter/],
  ])(
    'SE-05 runCheck() rejects a request with 503 if the check returns %s',
    async (_, result, reason) => {
      const expected = {
        status: 503,
        code: 'request_rejected',
        reason: expect.stringMatching(reason),
      };
      expect(await rejection(() => result)).toMatchObject(expected);
      expect(await rejection(async () => result)).toMatchObject(expected);
    },
  );

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
    'SE-05 runCheck() rejects a request with 503 if the check %s, and the response does not contain the cause',
    async (_, check, reason) => {
      const { message, ...rest } = await rejection(check);
      expect(rest).toMatchObject({
        status: 503,
        code: 'request_rejected',
        reason: expect.stringMatching(reason),
      });
      expect(message).toBe(
        "The application's own check of the request failed; the log contains the cause.",
      );
    },
  );
});

describe('requireFittingLength', () => {
  it('WH-04 requireFittingLength() rejects a Content-Length over the limit', () => {
    for (const length of ['101', 101, [101]]) {
      const headers = { 'content-length': length } as never;
      expect(codeOf(() => requireFittingLength(headers, 100))).toBe('payload_too_large');
    }
    for (const length of ['100', undefined, 'x']) {
      const headers = { 'content-length': length } as never;
      expect(() => requireFittingLength(headers, 100)).not.toThrow();
    }
  });
});

describe('requirePlainJson', () => {
  const json = 'application/json';

  it.each([
    { 'content-type': json },
    { 'content-type': 'Application/JSON; charset=utf-8' },
    { 'content-type': [json, json] },
    { 'content-type': json, 'content-encoding': 'Identity' },
    { 'content-type': json, 'content-encoding': ['identity', 'identity'] },
    { 'content-type': json, 'content-encoding': '' },
    { 'content-type': json, 'content-encoding': null },
    { 'content-type': json, 'content-encoding': {} },
  ])('WH-30 requirePlainJson() accepts the headers %j', (headers) => {
    expect(() => requirePlainJson(headers as never)).not.toThrow();
  });

  it.each([
    [{}, 'content_type_unsupported'],
    [{ 'content-type': 7 }, 'content_type_unsupported'],
    [{ 'content-type': ['text/plain', json] }, 'content_type_unsupported'],
    [{ 'content-type': json, 'content-encoding': 'gzip' }, 'content_encoding_unsupported'],
    [
      { 'content-type': json, 'content-encoding': ['identity', 'gzip'] },
      'content_encoding_unsupported',
    ],
    [{ 'content-type': json, 'content-encoding': 1 }, 'content_encoding_unsupported'],
  ])('WH-05 requirePlainJson() rejects the headers %j with %s', (headers, code) => {
    expect(codeOf(() => requirePlainJson(headers as never))).toBe(code);
  });
});
