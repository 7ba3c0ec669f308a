import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { json, type Script } from '../../support/api/scripted-service.js';

const text =
  (status: number, body: string, type = 'text/plain'): Script =>
  (_, response) =>
    response.writeHead(status, { 'content-type': type }).end(body);

/** Yields this number of chunks, each one mebibyte of zeros. */
function* zeros(mebibytes: number): Generator<Buffer> {
  const chunk = Buffer.alloc(1024 ** 2);
  for (let n = 0; n < mebibytes; n += 1) yield chunk;
}

describeWithEachAdapter('responses of the service', (harness) => {
  it.each([
    [400, 'validation_failed'],
    [402, 'unexpected_status'],
    [403, 'permission_denied'],
    [404, 'not_found'],
    [408, 'unexpected_status'],
    [409, 'conflict'],
    [422, 'validation_failed'],
    [429, 'rate_limited'],
    [500, 'server_error'],
    [503, 'server_error'],
  ])(
    'HT-25 a response with status %i causes the error %s with status, body, request id and Retry-After',
    async (status, code) => {
      const body = { error: 'details-4711' };
      const headers = { 'x-request-id': 'req-1', 'retry-after': '3' };
      harness.service.onCall = json(status, body, headers);
      const { payments } = await harness.boot({ retry: false });
      const error = (await payments.getTransaction('tx-0815').catch((e: unknown) => e)) as Error;
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({
        name: 'PaymentsApiError',
        code,
        status,
        body,
        requestId: 'req-1',
        retryAfterMs: 3_000,
        method: 'GET',
        path: '/v1/transactions/{id}',
        company: 'default',
        attempts: 1,
      });
      expect(error.message).toContain('GET /v1/transactions/{id}');
      expect(error.message).toContain(String(status));
      for (const shown of [error.message, JSON.stringify(error), inspect(error)]) {
        expect(shown).not.toMatch(/details-4711|tx-0815/);
      }
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code, status, requestId: 'req-1' });
    },
  );

  it('HT-25 the error for a response with a text body contains the text, and the request id of the response', async () => {
    const { payments } = await harness.boot({ retry: false });
    harness.service.onCall = (_, response) =>
      response.writeHead(500, { 'x-request-id': 'abc' }).end('<h1>Oh</h1>');
    await expect(payments.get('/v1/things')).rejects.toMatchObject({
      body: '<h1>Oh</h1>',
      requestId: 'abc',
      path: '/v1/things',
    });
    await expect(
      payments.get('/v1/things/1', { pathTemplate: '/v1/things/{id}' }),
    ).rejects.toMatchObject({ path: '/v1/things/{id}' });
  });

  it.each([
    ['JSON', json(200, { a: 1 }), { a: 1 }],
    ['JSON with another content type', text(200, '{"a":1}'), { a: 1 }],
    ['JSON after a byte order mark', text(200, '\uFEFF{"a":1}', 'application/json'), { a: 1 }],
    ['JSON with a +json type', text(200, '"x"', 'application/vnd.api+json; charset=utf-8'), 'x'],
    ['text', text(200, '42'), '42'],
    ['invalid JSON', text(200, '{"a":', 'application/json'), '{"a":'],
    ['an empty body', text(200, ''), undefined],
    ['an empty body with a JSON type', text(200, '', 'application/json'), undefined],
    ['a 204 response', (_: unknown, r: ServerResponse) => r.writeHead(204).end(), undefined],
  ] as [string, Script, unknown][])(
    'HT-26 a call resolves to the documented value for %s',
    async (_, script, body) => {
      harness.service.onCall = script;
      const { payments } = await harness.boot();
      expect(await payments.get('/v1/things')).toEqual(body);
      expect(await payments.sendTestWebhook()).toEqual(body);
      const transaction = payments.getTransaction('1');
      if (typeof body === 'object') await expect(transaction).resolves.toEqual(body);
      else await expect(transaction).rejects.toMatchObject({ code: 'response_invalid' });
    },
  );

  it('HT-26 request() returns status, headers, request id and body', async () => {
    const headers = { 'x-request-id': 'r-1', 'x-total': '7', 'set-cookie': 'session=1' };
    harness.service.onCall = json(201, { id: 1 }, headers);
    const { payments } = await harness.boot();
    const response = await payments.request('POST', '/v1/things', { body: { a: 'ü' } });
    expect(response).toMatchObject({ status: 201, body: { id: 1 }, requestId: 'r-1' });
    expect(response.headers).toMatchObject({ 'x-total': '7' });
    expect(response.headers).not.toHaveProperty('set-cookie');
    const [seen] = harness.service.calls;
    expect(JSON.parse(seen?.body ?? '')).toEqual({ a: 'ü' });
    expect(seen?.headers['content-type']).toBe('application/json');
    expect(seen?.headers['user-agent']).toBe('nestjs-payments');
  });

  it('HT-26 a call without a body sends no body and no content type', async () => {
    const { payments } = await harness.boot();
    await payments.sendTestWebhook();
    const [seen] = harness.service.calls;
    expect(seen).toMatchObject({ method: 'POST', path: '/v1/webhooks/test', body: '' });
    expect(seen?.headers).not.toHaveProperty('content-type');
    expect(seen?.headers['content-length']).toBe('0');
  });

  it('HT-27 a response of exactly maxResponseBytes is read, and a response with one byte more causes an error', async () => {
    harness.service.onCall = text(200, 'x'.repeat(1000));
    const { payments } = await harness.boot({ maxResponseBytes: 1000 });
    await expect(payments.get('/v1/things')).resolves.toHaveLength(1000);
    harness.service.onCall = text(200, 'x'.repeat(1001));
    await expect(payments.get('/v1/things')).rejects.toThrow(/maxResponseBytes/);
  });

  it('HT-27 a response that decompresses to more than maxResponseBytes causes response_too_large', async () => {
    const gzip = (bytes: number): Script => {
      const body = gzipSync('x'.repeat(bytes));
      return (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(body);
    };
    const { payments } = await harness.boot({ maxResponseBytes: 1000 });
    harness.service.onCall = gzip(1000);
    await expect(payments.get('/v1/things')).resolves.toHaveLength(1000);
    harness.service.onCall = gzip(1001);
    await expect(payments.get('/v1/things')).rejects.toMatchObject({ code: 'response_too_large' });
  });

  it('HT-27 the error for a 404 response with a huge body contains the status and the first 64 KiB', async () => {
    harness.service.onCall = (_, response) => {
      response.writeHead(404);
      Readable.from(zeros(512)).pipe(response);
    };
    const { payments } = await harness.boot();
    const error = await payments.getTransaction('1').catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'not_found', status: 404 });
    expect((error as { body: string }).body).toHaveLength(64 * 1024);
  });
});
