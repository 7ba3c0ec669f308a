import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { signBody } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: [SECRET] };
const PREVIOUS = 'whsec_previous_9f31';
const envelope = {
  id: 'e-1',
  eventType: 'transaction.completed',
  timestamp: '2026-11-20T10:00:00.000Z',
  data: {},
};

describe.each(ADAPTER_OPTIONS)('the endpoint on $adapter with $option', ({ adapter, option }) => {
  let app: WebhookApplication;
  let orders: Orders;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      payments: { webhookSecret: [SECRET, PREVIOUS] },
      providers: [Orders],
    });
    orders = app.app.get(Orders);
  });
  beforeEach(() => {
    app.log.lines.length = 0;
    orders.seen.length = 0;
  });
  afterAll(async () => app.app.close());

  it('WH-01 a valid webhook request gets 200, and the handler gets the envelope, the company and the raw bytes', async () => {
    const sent = { ...envelope, id: randomUUID(), data: { amount: 1500 }, metadata: { a: 1 } };
    const signed = signedWebhook(COMPANY, JSON.stringify(sent, null, 2));
    const response = await app.send(signed);
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.body).toEqual({ received: true, status: 'handled', id: sent.id });
    expect(orders.seen).toHaveLength(1);
    const { event, context } = orders.seen[0]!;
    expect(event).toEqual(sent);
    expect(context.company).toBe('default');
    expect(context.raw.equals(signed.body)).toBe(true);
  });

  it.each([
    ['missing', undefined, 'signature_missing'],
    ['malformed', 'sha512=zz', 'signature_malformed'],
    ['mismatched', signBody(Buffer.from('{}'), SECRET), 'signature_mismatch'],
  ])('WH-02 a %s signature gets 401 with the code and no other detail', async (_, header, code) => {
    const signed = signedWebhook(COMPANY, { data: { note: 'a-private-note' } });
    const response = await app.send(signed, { headers: { 'X-Webhook-Signature': header } });
    expect(response.status).toBe(401);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.body).toEqual({ statusCode: 401, code, message: expect.any(String) });
    const expected = signed.headers['X-Webhook-Signature']!.slice(7);
    for (const secret of [SECRET, PREVIOUS, 'a-private-note', expected, expected.slice(0, 12)]) {
      expect(response.text).not.toContain(secret);
      expect(app.log.lines.join('\n')).not.toContain(secret);
    }
    expect(orders.seen).toEqual([]);
  });

  it.each([
    ['id', { ...envelope, id: 7 }],
    ['data', { ...envelope, data: 'a-private-note' }],
    ['metadata', { ...envelope, metadata: [] }],
    ['body', ['a-private-note']],
  ])(
    'WH-03 a signed body without a valid "%s" gets 400 with the name of the field and without its value',
    async (field, body) => {
      const response = await app.send(signedWebhook(COMPANY, JSON.stringify(body)));
      expect(response.status).toBe(400);
      expect(response.body).toMatchObject({ statusCode: 400, code: 'payload_invalid' });
      expect(response.body['message']).toContain(`"${field}"`);
      expect(response.text).not.toContain('a-private-note');
    },
  );

  it.each(['text/plain', 'application/jsonp', undefined])(
    'WH-05 a webhook request with the Content-Type %p gets 415',
    async (type) => {
      const response = await app.send(signedWebhook(COMPANY), {
        headers: { 'Content-Type': type },
      });
      const body = { statusCode: 415, code: 'content_type_unsupported' };
      expect(response).toMatchObject({ status: 415, body });
      expect(orders.seen).toEqual([]);
    },
  );

  it.each(['gzip', 'gzip, identity'])(
    'WH-05 a webhook request with the Content-Encoding %s gets 415',
    async (encoding) => {
      const response = await app.send(signedWebhook(COMPANY), {
        headers: { 'Content-Encoding': encoding },
      });
      expect(response).toMatchObject({
        status: 415,
        body: { code: 'content_encoding_unsupported' },
      });
    },
  );

  it.each([
    { 'Content-Encoding': 'identity' },
    { 'Content-Type': 'application/json; charset=utf-8' },
    { 'Content-Type': 'Application/JSON' },
  ])('WH-05 WH-07 a webhook request with %j is accepted', async (headers) => {
    expect(await app.send(signedWebhook(COMPANY), { headers })).toMatchObject({ status: 200 });
    expect(orders.seen).toHaveLength(1);
  });

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'])(
    'WH-08 the method %s on the webhook path gets 404 or 405',
    async (method) => {
      for (const path of ['/webhooks/payments', '/webhooks/payments/default']) {
        const { headers, body } = signedWebhook(COMPANY);
        const bare = method === 'GET' || method === 'HEAD';
        const response = await app.exchange(path, { method, ...(!bare && { headers, body }) });
        expect([404, 405]).toContain(response.status);
      }
      expect(orders.seen).toEqual([]);
    },
  );

  // The other promises do not depend on how the application parses bodies.
  if (option !== Object.keys(BODY_OPTIONS)[0]) return;

  it.each([
    ['first', 0],
    ['second', 1],
  ])(
    'WH-06 a webhook request with two signature headers is accepted if the %s header is valid',
    async (_, place) => {
      const { path, headers, body } = signedWebhook(COMPANY);
      const values = [
        signBody(Buffer.from('other'), SECRET),
        signBody(Buffer.from('third'), SECRET),
      ];
      values[place] = headers['X-Webhook-Signature']!;
      const pairs = values.flatMap((value) => ['X-Webhook-Signature', value]);
      const response = await app.exchange(path, {
        headers: ['Content-Type', 'application/json', ...pairs],
        body,
      });
      expect(response.status).toBe(200);
    },
  );

  it('WH-08 the method OPTIONS on the webhook path causes no server error', async () => {
    const { status } = await app.exchange('/webhooks/payments', { method: 'OPTIONS' });
    expect(status).toBeLessThan(500);
  });

  it('WH-09 the signed eventType is used, and an X-Webhook-Event header that differs is logged once', async () => {
    const signed = signedWebhook(COMPANY, { eventType: 'payout.settled' });
    const forged = { 'X-Webhook-Event': 'transaction.completed' };
    expect(await app.send(signed, { headers: forged })).toMatchObject({
      status: 200,
      body: { status: 'unhandled' },
    });
    expect(orders.seen).toEqual([]);
    const lines = app.log.matching(/X-Webhook-Event/);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^warn .*has the type payout\.settled in its signed body/);
  });

  it('WH-09 a webhook request without the header X-Webhook-Event is accepted, and nothing is logged', async () => {
    const headers = { 'X-Webhook-Event': undefined };
    expect(await app.send(signedWebhook(COMPANY), { headers })).toMatchObject({ status: 200 });
    expect(orders.seen).toHaveLength(1);
    expect(app.log.lines).toEqual([]);
  });

  it('WH-16 while the current and the previous secret are listed, webhook requests with either secret are accepted, and all others are rejected', async () => {
    for (const [webhookSecret, status] of [
      [SECRET, 200],
      [PREVIOUS, 200],
      ['whsec_older', 401],
    ] as const) {
      const response = await app.send(signedWebhook({ webhookSecret }));
      expect(response.status).toBe(status);
    }
    expect(orders.seen).toHaveLength(2);
  });

  it('a webhook request with a query, or with the path of the company "default", is accepted', async () => {
    for (const path of ['/webhooks/payments?from=dashboard', '/webhooks/payments/default?x=%2F']) {
      expect(await app.send(signedWebhook(COMPANY), { path })).toMatchObject({ status: 200 });
    }
    expect(orders.seen).toHaveLength(2);
  });

  it('SE-02 a webhook request to a path with a trailing slash gets 200 on Express, and 401 on Fastify because the company id is empty', async () => {
    const { status } = await app.send(signedWebhook(COMPANY), { path: '/webhooks/payments/' });
    expect(status).toBe(adapter === 'express' ? 200 : 401);
    const unsigned = { path: '/webhooks/payments/', headers: { 'X-Webhook-Signature': undefined } };
    expect((await app.send(signedWebhook(COMPANY), unsigned)).status).toBe(401);
  });

  it('a request line with an absolute URL, as some proxies write it, is accepted', async () => {
    const { headers, body } = signedWebhook(COMPANY);
    const target = 'http://shop.example/webhooks/payments';
    expect(await app.exchange('/', { target, headers, body })).toMatchObject({ status: 200 });
  });
});
