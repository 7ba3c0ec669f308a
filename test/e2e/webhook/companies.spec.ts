import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  Orders,
  ADAPTERS,
  WebhookApplication,
  company,
} from '../../support/webhook/webhook-application.js';

const ACME = company('acme', ['whsec_acme_new', 'whsec_acme_old']);
const BOLT = company(`Bolt.Ltd~1_x-${'y'.repeat(86)}`, 'whsec_bolt');

describe.each(Object.keys(ADAPTERS))('several companies on %s', (adapter) => {
  let app: WebhookApplication;
  let orders: Orders;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: [ACME, BOLT] },
      providers: [Orders],
    });
    orders = app.app.get(Orders);
  });
  beforeEach(() => {
    app.log.lines.length = 0;
    orders.seen.length = 0;
  });
  afterAll(async () => app.app.close());

  it('WH-15 webhook requests of each company are accepted, and the handler gets the company', async () => {
    expect(await app.send(signedWebhook(ACME))).toMatchObject({ status: 200 });
    expect(await app.send(signedWebhook(BOLT))).toMatchObject({ status: 200 });
    expect(orders.seen.map(({ context }) => context.company)).toEqual([ACME.id, BOLT.id]);
  });

  it('WH-15 a webhook request for one company with a signature of another company gets 401', async () => {
    const path = `/webhooks/payments/${ACME.id}`;
    expect(await app.send(signedWebhook(BOLT), { path })).toMatchObject({
      status: 401,
      body: { code: 'signature_mismatch' },
    });
    expect(orders.seen).toEqual([]);
  });

  it.each(['nobody', 'ACME', '__proto__', '..%2Facme'])(
    'WH-15 a webhook request for the unknown company "%s" gets 401',
    async (id) => {
      const response = await app.send(signedWebhook(ACME), { path: `/webhooks/payments/${id}` });
      expect(response).toMatchObject({ status: 401, body: { code: 'company_unknown' } });
      expect(orders.seen).toEqual([]);
      // The rejection is logged at most once per minute.
      for (const line of app.log.lines) expect(line).toMatch(/was rejected \(company_unknown\)/);
    },
  );

  it('WH-15 a path without a company gets 401 if there are several companies', async () => {
    const response = await app.send(signedWebhook(ACME), { path: '/webhooks/payments' });
    expect(response).toMatchObject({ status: 401, body: { code: 'company_unknown' } });
  });

  it('WH-15 a webhook request with a company id of more than 100 characters gets 401, or 414 on Fastify', async () => {
    const path = `/webhooks/payments/${'a'.repeat(101)}`;
    const { status } = await app.send(signedWebhook(ACME), { path });
    expect(status).toBe(adapter === 'express' ? 401 : 414);
  });

  it('SE-02 a webhook request with a company id that cannot be decoded gets 401 on Express, and 400 on Fastify', async () => {
    const response = await app.send(signedWebhook(ACME), { path: '/webhooks/payments/%FF' });
    expect(response.status).toBe(adapter === 'express' ? 401 : 400);
  });

  it('WH-15 the same event id from two companies is stored as two events', async () => {
    const id = randomUUID();
    for (const each of [ACME, BOLT]) {
      expect(await app.send(signedWebhook(each, { id }))).toMatchObject({
        status: 200,
        body: { status: 'handled' },
      });
    }
    expect(orders.count(id)).toBe(2);
    expect(
      await app.send(
        signedWebhook(BOLT, {
          id,
          timestamp: orders.seen[1]!.event.timestamp,
          data: orders.seen[1]!.event.data,
        }),
      ),
    ).toMatchObject({
      status: 200,
      body: { status: 'duplicate' },
    });
    expect(orders.count(id)).toBe(2);
  });
});

describe.each(Object.keys(ADAPTERS))('one company on %s', (adapter) => {
  it('WH-15 the only company receives webhook requests at its own path and at the path without a company', async () => {
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: [BOLT], webhookPath: '/money/in/' },
      providers: [Orders],
    });
    for (const path of ['/money/in', `/money/in/${BOLT.id}`, '/money/in/default']) {
      expect(await app.send(signedWebhook(BOLT), { path })).toMatchObject({ status: 200 });
    }
    const companies = app.app.get(Orders).seen.map(({ context }) => context.company);
    expect(companies).toEqual([BOLT.id, BOLT.id, BOLT.id]);
    expect((await app.send(signedWebhook(BOLT))).status).toBe(404);
  });

  it('WH-14 two applications in one process share no secrets, events, handlers or paths', async () => {
    const start = async (webhookSecret: string, webhookPath: string) =>
      WebhookApplication.start({
        adapter: ADAPTERS[adapter]!(),
        payments: { webhookSecret, webhookPath },
        providers: [Orders],
      });
    await using first = await start('whsec_first', 'in');
    await using second = await start('whsec_second', 'in');
    await using third = await start('whsec_first', 'elsewhere');
    const signed = signedWebhook({ webhookSecret: 'whsec_first' });
    const { id } = JSON.parse(signed.body.toString()) as { id: string };
    const to = (path: string) => ({ path });
    expect(await first.send(signed, to('/in'))).toMatchObject({ body: { status: 'handled' } });
    expect(await second.send(signed, to('/in'))).toMatchObject({ status: 401 });
    expect(await third.send(signed, to('/in'))).toMatchObject({ status: 404 });
    expect(await third.send(signed, to('/elsewhere'))).toMatchObject({
      body: { status: 'handled' },
    });
    expect(await first.send(signed, to('/in'))).toMatchObject({ body: { status: 'duplicate' } });
    const counts = [first, second, third].map(({ app }) => app.get(Orders).count(id));
    expect(counts).toEqual([1, 0, 1]);
    await second.app.close();
    expect(
      await first.send(signedWebhook({ webhookSecret: 'whsec_first' }), to('/in')),
    ).toMatchObject({ status: 200 });
  });
});
