import type { IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { AdmissionCheck, AdmissionRequest } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { timersAtRest, until } from '../../support/time/waiting.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import { headOf } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { Orders, SECRET, WebhookApplication } from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };
const MIB = 1024 ** 2;

/** Node's request, which is the property `raw` of Fastify's request. */
function messageOf(request: unknown): IncomingMessage {
  return (request as { raw?: IncomingMessage }).raw ?? (request as IncomingMessage);
}

const BEHIND_A_PROXY = {
  express: () => new ExpressAdapter(),
  fastify: () => new FastifyAdapter({ trustProxy: true }),
};

describe.each(['express', 'fastify'] as const)('webhook.before on %s', (adapter) => {
  const runtime = new FakeRuntime();
  let app: WebhookApplication;
  let orders: Orders;
  const start = async (
    before: AdmissionCheck,
    main?: (app: INestApplication) => void,
  ): Promise<void> => {
    app = await WebhookApplication.start({
      adapter: BEHIND_A_PROXY[adapter](),
      payments: { runtime, webhook: { before, maxPending: 2 } },
      providers: [Orders],
      ...(main && { main }),
    });
    app.log.lines.length = 0;
    orders = app.app.get(Orders);
  };
  const sendValid = async (headers: Record<string, string> = {}) =>
    app.send(signedWebhook(COMPANY), { headers });
  const head = (length: number) =>
    headOf(signedWebhook(COMPANY), { 'Content-Length': String(length) });
  afterEach(async () => app.app.close());

  it('SE-05 an allowlist rejects other addresses before the body is read and before app.use() middleware runs', async () => {
    const used: unknown[] = [];
    const read: boolean[] = [];
    await start(
      ({ address, request }) => {
        read.push(messageOf(request).readableDidRead);
        return address === '203.0.113.7' ? undefined : { status: 403 };
      },
      (nest) => {
        nest.use((request: unknown, _: unknown, next: () => void) => {
          used.push(request);
          next();
        });
      },
    );
    const sender = await RawConnection.open(app.url);
    await sender.write(head(1000));
    expect(await sender.status()).toBe(403);
    sender.socket.destroy();
    expect(await sendValid()).toMatchObject({
      status: 403,
      body: { statusCode: 403, code: 'request_rejected' },
    });
    expect(read).toEqual([false, false]);
    // On Fastify, Nest runs app.use() middleware in its own hook, before every route.
    if (adapter === 'express') expect(used).toEqual([]);
    expect(orders.seen).toEqual([]);
    expect(app.log.lines).toEqual([
      'warn A webhook request was rejected (request_rejected). The check "webhook.before" of the application returned status 403. ' +
        'PaymentWebhook',
    ]);
  });

  it('SE-05 behind a proxy, an allowlist uses the client address that the framework determines', async () => {
    await start(
      ({ request }) =>
        (request as { ip: string }).ip === '203.0.113.7' ? undefined : { status: 403 },
      (nest) => {
        if (adapter === 'express') (nest as NestExpressApplication).set('trust proxy', true);
      },
    );
    expect(await sendValid({ 'X-Forwarded-For': '203.0.113.7' })).toMatchObject({ status: 200 });
    expect(await sendValid({ 'X-Forwarded-For': '203.0.113.8' })).toMatchObject({ status: 403 });
    expect(await sendValid()).toMatchObject({ status: 403 });
  });

  it('SE-05 an asynchronous rate limiter with a shared store rejects requests above its limit with 429 and Retry-After', async () => {
    const used = new Map<string, number>();
    const consume = async (key: string): Promise<number> => {
      await new Promise((resolve) => setImmediate(resolve));
      used.set(key, (used.get(key) ?? 0) + 1);
      return used.get(key)!;
    };
    await start(async ({ company }) =>
      (await consume(company)) > 2 ? { status: 429, retryAfterSeconds: 60 } : undefined,
    );
    for (let n = 0; n < 2; n += 1) expect(await sendValid()).toMatchObject({ status: 200 });
    for (let n = 0; n < 2; n += 1) {
      const headers = { 'retry-after': '60' };
      expect(await sendValid()).toMatchObject({ status: 429, headers });
    }
    expect(app.log.matching(/returned status 429/)).toHaveLength(1);
    expect(used).toEqual(new Map([['default', 4]]));
  });

  it('SE-05 webhook.before gets the company, URL, headers, address and the request of the framework', async () => {
    const seen: AdmissionRequest[] = [];
    await start((request) => void seen.push(request));
    const signed = signedWebhook({ ...COMPANY, id: 'acme' });
    await app.send(signed, { path: `${signed.path}?a=b` });
    expect(seen).toEqual([
      {
        company: 'acme',
        url: '/webhooks/payments/acme?a=b',
        headers: expect.objectContaining({ 'content-type': 'application/json' }),
        address: '127.0.0.1',
        request: expect.objectContaining({ ip: '127.0.0.1' }),
      },
    ]);
  });

  it('SE-05 a sender that is rejected while it sends the body can read the response', async () => {
    let reject = (): void => {};
    const response = new Promise<object>((resolve) => (reject = () => resolve({ status: 403 })));
    await start(async () => response);
    const sender = await RawConnection.open(app.url);
    await sender.write(head(MIB));
    for (let n = 0; n < 8; n += 1) expect(await sender.write(Buffer.alloc(64 * 1024))).toBe(true);
    reject();
    expect(await sender.status()).toBe(403);
    for (let n = 0; n < 8; n += 1) expect(await sender.write(Buffer.alloc(64 * 1024))).toBe(true);
    sender.socket.destroy();
  });

  it.each([
    ['throws', () => Promise.reject(new Error('the limiter is down'))],
    ['returns null', () => null],
  ])('SE-05 the response is 503, with one log line, if webhook.before %s', async (_, before) => {
    await start(before as AdmissionCheck);
    for (let n = 0; n < 20; n += 1) {
      expect(await sendValid()).toMatchObject({ status: 503, body: { code: 'request_rejected' } });
    }
    expect(app.log.lines).toHaveLength(1);
    expect(app.log.lines[0]).toMatch(/"webhook\.before".*(the limiter is down|neither undefined)/);
    expect(orders.seen).toEqual([]);
  });

  it('SE-05 if webhook.before takes longer than "bodyTimeoutMs", the webhook request gets 503 and is no longer pending', async () => {
    let hanging = true;
    await start(async () => (hanging ? new Promise<undefined>(() => {}) : undefined));
    const idle = await timersAtRest(runtime);
    const responses = [sendValid(), sendValid()];
    await until(() => runtime.pending === idle + 2, 'the requests');
    await timersAtRest(runtime);
    expect(await sendValid()).toMatchObject({ status: 503, body: { code: 'webhook_busy' } });
    runtime.advance(5000);
    for (const response of responses) {
      expect(await response).toMatchObject({ status: 503, body: { code: 'request_rejected' } });
    }
    expect(app.log.matching(/"webhook\.before".*did not return within 5000 ms/)).toHaveLength(1);
    hanging = false;
    expect(await sendValid()).toMatchObject({ status: 200 });
  });
});
