import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, ValidationPipe } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import { signedDelivery } from '../support/webhook/signed-delivery.js';
import {
  OnAll,
  OnClass,
  OnMethods,
  RequestScoped,
  Validated,
} from '../support/webhook/webhook-controllers.js';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  STAGES,
  WebhookApplication,
  company,
} from '../support/webhook/webhook-application.js';

const DEFAULT = company('default', SECRET);
const ACME = company('acme', 'whsec_acme');
@Injectable()
class Failing {
  @OnPaymentEvent('payout.failed')
  fail(): void {
    throw new Error('a-private-reason');
  }
}

const strict = () =>
  new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true });
const PATHS = [
  '/method',
  '/class',
  '/class/again',
  '/classes',
  '/all/x',
  '/all/x/y',
  '/scoped',
  '/validated',
];

describe.each(STAGES)('own controllers on $adapter with $option', ({ adapter, option }) => {
  let app: WebhookApplication;
  let orders: Orders;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      payments: { companies: [DEFAULT, ACME], webhookPath: false },
      controllers: [OnMethods, OnClass, OnAll, RequestScoped, Validated],
      providers: [Orders, Failing],
      main: (app) => void app.useGlobalPipes(strict()),
    });
    orders = app.app.get(Orders);
  });
  beforeEach(() => {
    app.log.lines.length = 0;
    orders.seen.length = 0;
  });
  afterAll(async () => app.app.close());

  it.each(PATHS)('WH-17 receives a delivery at %s', async (path) => {
    const delivery = signedDelivery(DEFAULT, { metadata: { pad: '€'.repeat(60_000) } });
    const answer = await app.send(delivery, { path });
    expect(answer).toMatchObject({ status: 200, body: { status: 'handled' } });
    expect(orders.seen).toHaveLength(1);
    expect(orders.seen[0]!.context.raw.equals(delivery.body)).toBe(true);
    expect(app.log.lines).toEqual([]);
  });

  it('WH-17 passes the delivery, the parsed body and the raw bytes to the controller', async () => {
    const delivery = signedDelivery(DEFAULT);
    const { body } = await app.send(delivery, { path: '/method' });
    const raw = delivery.body.toString('base64');
    expect(body).toMatchObject({ verified: true, company: 'default', same: true, raw });
  });

  it('WH-17 runs the pipes of the application on the parsed envelope', async () => {
    const { body } = await app.send(signedDelivery(DEFAULT), { path: '/validated' });
    expect(body).toMatchObject({ validated: true });
  });

  it.each(PATHS)(
    'WH-17 rejects at %s what the endpoint rejects, with the same answers',
    async (path) => {
      const delivery = signedDelivery(DEFAULT);
      const other = signedDelivery(ACME);
      const headers = (more: Record<string, string | undefined>) => ({ path, headers: more });
      const answers = [
        await app.send(other, { path }),
        await app.send(delivery, headers({ 'X-Webhook-Signature': undefined })),
        await app.send(signedDelivery(DEFAULT, '{"id":"e"}'), { path }),
        await app.send(signedDelivery(DEFAULT, { metadata: { pad: 'x'.repeat(1024 ** 2) } }), {
          path,
        }),
        await app.send(delivery, headers({ 'Content-Type': 'text/plain' })),
        await app.send(delivery, headers({ 'Content-Encoding': 'gzip' })),
        await app.exchange(path, { headers: signedDelivery(DEFAULT, '').headers }),
      ];
      expect(answers.map(({ status, body }) => [status, body['statusCode'], body['code']])).toEqual(
        [
          [401, 401, 'signature_mismatch'],
          [401, 401, 'signature_missing'],
          [400, 400, 'payload_invalid'],
          [413, 413, 'payload_too_large'],
          [415, 415, 'content_type_unsupported'],
          [415, 415, 'content_encoding_unsupported'],
          [400, 400, 'payload_invalid'],
        ],
      );
      expect(orders.seen).toEqual([]);
    },
  );

  it('WH-17 reads the company from the parameter ":company"', async () => {
    expect(await app.send(signedDelivery(ACME), { path: '/method/of/acme' })).toMatchObject({
      status: 200,
    });
    expect(await app.send(signedDelivery(ACME), { path: '/method/of/default' })).toMatchObject({
      status: 401,
    });
    expect(await app.send(signedDelivery(ACME), { path: '/method/of/nobody' })).toMatchObject({
      status: 401,
      body: { code: 'company_unknown' },
    });
    expect(orders.seen.map(({ context }) => context.company)).toEqual(['acme']);
  });

  it.each(['/method', '/class', '/all/x'])(
    'WH-17 WH-08 answers methods other than POST at %s 404 or 405, never 500',
    async (path) => {
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
        const { headers, body } = signedDelivery(DEFAULT);
        const bare = method === 'GET' || method === 'HEAD';
        const answer = await app.exchange(path, { method, ...(!bare && { headers, body }) });
        expect([404, 405]).toContain(answer.status);
      }
      expect(app.log.lines).toEqual([]);
    },
  );

  it('WH-17 answers 503 if PaymentInbox.receive() throws, and shows nothing of the error of a handler', async () => {
    const failing = signedDelivery(DEFAULT, { eventType: 'payout.failed' });
    const answer = await app.send(failing, { path: '/method' });
    expect(answer.status).toBe(503);
    expect(answer.body).toEqual({
      statusCode: 503,
      message: expect.stringMatching(/1 of 1 handlers have not succeeded/),
    });
    expect(answer.text).not.toContain('a-private-reason');
  });

  it('WH-17 mounts no endpoint itself, and does not change the other routes', async () => {
    expect(await app.send(signedDelivery(DEFAULT))).toMatchObject({ status: 404 });
    const open = await app.send(signedDelivery(DEFAULT), { path: '/method/open' });
    expect(open.status).toBe(201);
    const parsed = adapter === 'fastify' || option !== 'bodyParser: false';
    expect(open.body['body'] !== undefined).toBe(parsed);
  });
});
