import { describe, expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { storedHeaders } from './webhook-verifier.js';
import type { WebhookVerifier } from './webhook-verifier.js';
import { WebhookGuard } from './webhook.guard.js';

describe('storedHeaders', () => {
  it('storedHeaders() stores the listed headers only', () => {
    const stored = {
      'content-type': 'application/json',
      'content-length': '12',
      'user-agent': 'service-Webhook/1.0',
      'x-webhook-event': 'transaction.completed',
      'x-request-id': 'r-1',
      traceparent: '00-1-2-01',
    };
    const others = {
      'x-webhook-signature': 'sha512=1',
      authorization: 'Bearer 1',
      'proxy-authorization': 'Basic 1',
      'x-auth-token': 'Bearer 1',
      'x-api-key': '1',
      cookie: 'session=1',
      'x-forwarded-for': '10.0.0.1',
      forwarded: 'for=10.0.0.1',
      'x-webhook-anything': '1',
      tracestate: '1',
    };
    expect(storedHeaders({ ...others, ...stored })).toEqual(stored);
    expect(storedHeaders(others)).toEqual({});
  });

  it('storedHeaders() joins several values, removes control characters and cuts at 256 characters', () => {
    const stored = storedHeaders({
      'user-agent': 'a'.repeat(300),
      'x-request-id': 'a\tb\u0000c\u0085d\u007f\r\n',
      'x-webhook-event': ['one', 'two'] as never,
      traceparent: '\u0000',
    });
    expect(stored).toEqual({
      'user-agent': 'a'.repeat(256),
      'x-request-id': 'abcd',
      'x-webhook-event': 'one, two',
    });
  });

  it.each([
    [512, '512'],
    [0, '0'],
    [12n, '12'],
    [true, 'true'],
    [['a', 2, null, {}], 'a, 2'],
    [`${'a'.repeat(255)}😀`, `${'a'.repeat(255)}\ufffd`],
    ['a\ud800b', 'a\ufffdb'],
    ...[undefined, null, '', [], [undefined], {}, { toString: 1 }, Symbol('s'), () => 1].map(
      (value) => [value, undefined],
    ),
  ] as [unknown, string | undefined][])(
    'WH-30 storedHeaders() stores the header value %p as %j',
    (value, text) => {
      const headers = { 'content-length': value, 'user-agent': 'service' } as never;
      expect(storedHeaders(headers)).toEqual({
        ...(text !== undefined && { 'content-length': text }),
        'user-agent': 'service',
      });
    },
  );
});

describe('WebhookGuard', () => {
  it("WebhookGuard passes an unexpected error on to the application's exception filter", async () => {
    const verifier = {
      verify: async () => Promise.reject(new TypeError('broken verifier')),
    } as unknown as WebhookVerifier;
    const http = { getRequest: () => ({ method: 'POST', headers: {} }) };
    const context = { switchToHttp: () => http } as unknown as ExecutionContext;
    await expect(new WebhookGuard(verifier).canActivate(context)).rejects.toThrow(TypeError);
  });
});
