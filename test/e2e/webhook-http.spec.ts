import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { signBody } from 'nestjs-payments';
import { signedDelivery } from '../support/webhook/signed-delivery.js';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  STAGES,
  WebhookApplication,
} from '../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: [SECRET] };
const PREVIOUS = 'whsec_previous_9f31';
const envelope = {
  id: 'e-1',
  eventType: 'transaction.completed',
  timestamp: '2026-11-20T10:00:00.000Z',
  data: {},
};

describe.each(STAGES)('the endpoint on $adapter with $option', ({ adapter, option }) => {
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

  it('WH-01 answers a valid delivery 200 and passes the envelope, the company and the raw bytes to the handler', async () => {
    const sent = { ...envelope, id: randomUUID(), data: { amount: 1500 }, metadata: { a: 1 } };
    const delivery = signedDelivery(COMPANY, JSON.stringify(sent, null, 2));
    const answer = await app.send(delivery);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(answer.body).toEqual({ received: true, status: 'handled', id: sent.id });
    expect(orders.seen).toHaveLength(1);
    const { event, context } = orders.seen[0]!;
    expect(event).toEqual(sent);
    expect(context.company).toBe('default');
    expect(context.raw.equals(delivery.body)).toBe(true);
  });

  it.each([
    ['missing', undefined, 'signature_missing'],
    ['malformed', 'sha512=zz', 'signature_malformed'],
    ['mismatched', signBody(Buffer.from('{}'), SECRET), 'signature_mismatch'],
  ])(
    'WH-02 answers a %s signature 401 with the code and no other detail',
    async (_, header, code) => {
      const delivery = signedDelivery(COMPANY, { data: { note: 'a-private-note' } });
      const answer = await app.send(delivery, { headers: { 'X-Webhook-Signature': header } });
      expect(answer.status).toBe(401);
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      expect(answer.body).toEqual({ statusCode: 401, code, message: expect.any(String) });
      const expected = delivery.headers['X-Webhook-Signature']!.slice(7);
      for (const secret of [SECRET, PREVIOUS, 'a-private-note', expected, expected.slice(0, 12)]) {
        expect(answer.text).not.toContain(secret);
        expect(app.log.lines.join('\n')).not.toContain(secret);
      }
      expect(orders.seen).toEqual([]);
    },
  );

  it.each([
    ['id', { ...envelope, id: 7 }],
    ['eventType', { ...envelope, eventType: undefined }],
    ['timestamp', { ...envelope, timestamp: 'yesterday' }],
    ['data', { ...envelope, data: 'a-private-note' }],
    ['metadata', { ...envelope, metadata: [] }],
    ['body', ['a-private-note']],
  ])(
    'WH-03 answers a signed body without a valid "%s" 400, with the name of the field and not its value',
    async (field, body) => {
      const answer = await app.send(signedDelivery(COMPANY, JSON.stringify(body)));
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ statusCode: 400, code: 'payload_invalid' });
      expect(answer.body['message']).toContain(`"${field}"`);
      expect(answer.text).not.toContain('a-private-note');
    },
  );

  it.each([
    ['text/plain', 'content_type_unsupported'],
    ['application/x-www-form-urlencoded', 'content_type_unsupported'],
    ['multipart/form-data; boundary=x', 'content_type_unsupported'],
    ['application/jsonp', 'content_type_unsupported'],
    ['application/problem+json', 'content_type_unsupported'],
    ['', 'content_type_unsupported'],
    [undefined, 'content_type_unsupported'],
  ])('WH-05 answers Content-Type %p 415', async (type, code) => {
    const answer = await app.send(signedDelivery(COMPANY), { headers: { 'Content-Type': type } });
    expect(answer).toMatchObject({ status: 415, body: { statusCode: 415, code } });
    expect(orders.seen).toEqual([]);
  });

  it.each(['gzip', 'deflate', 'br', 'gzip, identity', 'x-unknown'])(
    'WH-05 answers Content-Encoding %s 415',
    async (encoding) => {
      const answer = await app.send(signedDelivery(COMPANY), {
        headers: { 'Content-Encoding': encoding },
      });
      expect(answer).toMatchObject({
        status: 415,
        body: { code: 'content_encoding_unsupported' },
      });
    },
  );

  it.each([
    { 'Content-Encoding': 'identity' },
    { 'Content-Encoding': 'Identity' },
    { 'Content-Type': 'application/json; charset=utf-8' },
    { 'Content-Type': 'application/json;charset=UTF-8' },
    { 'Content-Type': 'Application/JSON' },
  ])('WH-05 WH-07 accepts a delivery with %j', async (headers) => {
    expect(await app.send(signedDelivery(COMPANY), { headers })).toMatchObject({ status: 200 });
    expect(orders.seen).toHaveLength(1);
  });

  it.each([
    ['first', 0],
    ['second', 1],
  ])(
    'WH-06 verifies a delivery with two signature headers of which the %s is valid',
    async (_, place) => {
      const { path, headers, body } = signedDelivery(COMPANY);
      const values = [
        signBody(Buffer.from('other'), SECRET),
        signBody(Buffer.from('third'), SECRET),
      ];
      values[place] = headers['X-Webhook-Signature']!;
      const pairs = values.flatMap((value) => ['X-Webhook-Signature', value]);
      const answer = await app.exchange(path, {
        headers: ['Content-Type', 'application/json', ...pairs],
        body,
      });
      expect(answer.status).toBe(200);
    },
  );

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'])(
    'WH-08 answers %s on the path 404 or 405',
    async (method) => {
      for (const path of ['/webhooks/payments', '/webhooks/payments/default']) {
        const { headers, body } = signedDelivery(COMPANY);
        const bare = method === 'GET' || method === 'HEAD';
        const answer = await app.exchange(path, { method, ...(!bare && { headers, body }) });
        expect([404, 405]).toContain(answer.status);
      }
      expect(orders.seen).toEqual([]);
    },
  );

  it('WH-08 answers OPTIONS on the path without a server error', async () => {
    const { status } = await app.exchange('/webhooks/payments', { method: 'OPTIONS' });
    expect(status).toBeLessThan(500);
  });

  it('WH-09 uses the signed eventType, and logs a header that differs once', async () => {
    const delivery = signedDelivery(COMPANY, { eventType: 'payout.settled' });
    const forged = { 'X-Webhook-Event': 'transaction.completed' };
    expect(await app.send(delivery, { headers: forged })).toMatchObject({
      status: 200,
      body: { status: 'unhandled' },
    });
    expect(orders.seen).toEqual([]);
    const lines = app.log.matching(/X-Webhook-Event/);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^warn .*signed as payout\.settled/);
  });

  it('WH-09 accepts a delivery without the header, and logs nothing', async () => {
    const headers = { 'X-Webhook-Event': undefined };
    expect(await app.send(signedDelivery(COMPANY), { headers })).toMatchObject({ status: 200 });
    expect(orders.seen).toHaveLength(1);
    expect(app.log.lines).toEqual([]);
  });

  it('WH-10 answers webhook.test 2xx without a handler, and logs it as a test', async () => {
    const id = randomUUID();
    const answer = await app.send(
      signedDelivery(COMPANY, { id, eventType: 'webhook.test', data: {} }),
    );
    expect(answer.status).toBe(200);
    expect(app.log.lines).toHaveLength(1);
    expect(app.log.lines[0]).toMatch(/^log Test event /);
    expect(app.log.lines[0]).toContain(id);
  });

  it.each(['payout.settled', 'transaction', 'constructor', '__proto__'])(
    'WH-11 answers the type %s, which has no handler, 200',
    async (eventType) => {
      const answer = await app.send(signedDelivery(COMPANY, { eventType }));
      expect(answer).toMatchObject({ status: 200, body: { received: true, status: 'unhandled' } });
    },
  );

  it('WH-16 accepts the previous secret while both are listed, and no other', async () => {
    for (const [webhookSecret, status] of [
      [SECRET, 200],
      [PREVIOUS, 200],
      ['whsec_older', 401],
    ] as const) {
      const answer = await app.send(signedDelivery({ webhookSecret }));
      expect(answer.status).toBe(status);
    }
    expect(orders.seen).toHaveLength(2);
  });

  it('accepts a delivery whose URL has a query, and one on the path of the company "default"', async () => {
    for (const path of ['/webhooks/payments?from=dashboard', '/webhooks/payments/default?x=%2F']) {
      expect(await app.send(signedDelivery(COMPANY), { path })).toMatchObject({ status: 200 });
    }
    expect(orders.seen).toHaveLength(2);
  });

  it('SE-02 answers a trailing slash 200 on Express, and as an empty company on Fastify', async () => {
    const { status } = await app.send(signedDelivery(COMPANY), { path: '/webhooks/payments/' });
    expect(status).toBe(adapter === 'express' ? 200 : 401);
    const unsigned = { path: '/webhooks/payments/', headers: { 'X-Webhook-Signature': undefined } };
    expect((await app.send(signedDelivery(COMPANY), unsigned)).status).toBe(401);
  });

  it('accepts a request line with an absolute URL, as some proxies write it', async () => {
    const { headers, body } = signedDelivery(COMPANY);
    const target = 'http://shop.example/webhooks/payments';
    expect(await app.exchange('/', { target, headers, body })).toMatchObject({ status: 200 });
  });
});
