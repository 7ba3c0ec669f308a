import { request as httpRequest } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import {
  get,
  getToken,
  json,
  post,
  put,
  requestToken,
  sandbox,
} from '../../support/emulator/api-client.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started));

describe('controls over HTTP', () => {
  it('the controls of the emulator create and return a company that is ready to use', async () => {
    const given = { companyId: 'acme', clientId: 'acme-id', webhookUrl: receiver.url };
    const response = await post(`${controls}/companies`, given);
    expect(response.status).toBe(201);
    const created = await json(response);
    expect(created).toEqual(emulator.companies()[1]);
    expect(created).toMatchObject({ companyId: 'acme', clientId: 'acme-id' });
    expect(await json(get(`${controls}/companies/acme`))).toEqual(created);
    const clientSecret = created['clientSecret'] as unknown as string;
    const request = { baseUrl: emulator.baseUrl, clientId: 'acme-id', clientSecret };
    expect((await requestToken(request)).status).toBe(200);
  });

  it('the controls of the emulator respond with 409 to an id or client id that is in use, and with 404 to an unknown id', async () => {
    expect((await post(`${controls}/companies`, { companyId: 'default' })).status).toBe(409);
    const { clientId } = emulator.company;
    expect((await post(`${controls}/companies`, { clientId })).status).toBe(409);
    expect((await get(`${controls}/companies/none`)).status).toBe(404);
    expect((await put(`${controls}/companies/none/faults`, {})).status).toBe(404);
    expect((await get(`${controls}/transactions/none`)).status).toBe(404);
    expect((await post(`${controls}/transactions/none/complete`)).status).toBe(404);
    expect((await post(`${controls}/deliveries/none/redeliver`)).status).toBe(404);
    expect((await get(`${controls}/checkout/none`)).status).toBe(404);
  });

  it('the controls of the emulator change single fields of a webhook', async () => {
    const url = `${controls}/companies/default/webhook`;
    const { webhookSecret } = emulator.company;
    expect((await put(url, { active: false })).status).toBe(200);
    expect(emulator.company.webhook).toEqual({
      url: receiver.url,
      secret: webhookSecret,
      active: false,
    });
    await put(url, { url: null, secret: 'new', active: true });
    expect(emulator.company.webhook).toEqual({ url: null, secret: 'new', active: true });
  });

  it('the controls of the emulator rotate webhook secrets and client secrets', async () => {
    const before = emulator.company;
    const rotated = await json(post(`${controls}/companies/default/webhook-secret`));
    expect(rotated['webhookSecret']).not.toBe(before.webhookSecret);
    const company = await json(
      post(`${controls}/companies/default/client-secret`, {
        environment: 'production',
        secret: 'chosen',
      }),
    );
    expect(company['production']).toMatchObject({ clientSecret: 'chosen' });
    expect(company['clientSecret']).toBe(before.clientSecret);
  });

  it('the controls of the emulator revoke tokens', async () => {
    const token = await getToken(emulator);
    expect((await post(`${controls}/companies/default/revoke-tokens`)).status).toBe(204);
    expect((await get(`${emulator.baseUrl}/v1/transactions/none`, token)).status).toBe(401);
  });

  it('the controls of the emulator set and return faults', async () => {
    const url = `${controls}/companies/default/faults`;
    const plan = { delivery: { duplicate: { copies: 1 } }, api: { error: { next: 2 } } };
    expect(await json(put(url, plan))).toEqual(plan);
    expect(await json(get(url))).toEqual(plan);
    expect(emulator.faults()).toEqual(plan);
    const wrong = await put(url, { delivery: { duplicate: { copies: 0 } } });
    expect(wrong.status).toBe(400);
    expect((await json(wrong))['message']).toBe(
      'delivery.duplicate.copies must be a whole number of copies from 1 to 100',
    );
    expect(emulator.faults()).toEqual(plan);
  });

  it('the controls of the emulator respond with 400 to a body with more than 500 levels, and accept a body with fewer levels', async () => {
    const nested = (levels: number) =>
      post(`${controls}/events`, {
        eventType: 'x.y',
        data: JSON.parse(`{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`) as object,
      });
    for (const levels of [499, 2_000]) {
      const refused = await nested(levels);
      expect(refused.status).toBe(400);
      expect((await json(refused))['message']).toBe('the body must be at most 500 levels deep');
    }
    expect((await nested(498)).status).toBe(201);
  });

  it('the controls of the emulator send an event of any type', async () => {
    const sent = await json(post(`${controls}/events`, { eventType: 'x.y', data: { a: 1 } }));
    await emulator.idle();
    expect(receiver.first.event).toEqual(sent);
    expect((await post(`${controls}/events`, { eventType: 'x\ny' })).status).toBe(400);
  });

  it('the controls of the emulator filter the delivery log, and redeliver an event', async () => {
    receiver.respondWith(500, 200);
    const event = emulator.sendEvent({ eventType: 'one' });
    await emulator.idle();
    emulator.sendEvent({ eventType: 'two' });
    await emulator.idle();
    const failed = await get(`${controls}/deliveries?state=failed&limit=5`);
    const deliveries = (await failed.json()) as { id: string; eventId: string }[];
    expect(deliveries.map(({ eventId }) => eventId)).toEqual([event.id]);
    const url = `${controls}/deliveries/${deliveries[0]?.id}`;
    expect(await json(get(url))).toMatchObject({ eventType: 'one', response: { status: 500 } });
    expect(await json(post(`${url}/redeliver`))).toMatchObject({
      eventId: event.id,
      cause: 'redelivery',
      state: 'delivered',
    });
    expect((await get(`${controls}/deliveries?state=lost`)).status).toBe(400);
    expect((await get(`${controls}/deliveries?limit=many`)).status).toBe(400);
  });

  it('the control `flush` ends the delays of deliveries', async () => {
    emulator.setFaults({ delivery: { delay: { ms: 3_600_000 } } });
    emulator.sendEvent({ eventType: 'x' });
    expect((await post(`${controls}/deliveries/flush`)).status).toBe(204);
    expect(receiver.received).toHaveLength(1);
  });

  it('the control `reset` restores the state that the emulator had at its start', async () => {
    emulator.createCompany();
    expect((await post(`${controls}/reset`)).status).toBe(204);
    expect(emulator.companies()).toHaveLength(1);
  });

  it('the controls of the emulator return a description of the emulator', async () => {
    expect(await json(get(controls))).toMatchObject({
      emulator: 'payments-emulator',
      environment: 'sandbox',
      url: emulator.baseUrl,
    });
  });

  it('the controls of the emulator reject invalid input and name each invalid field', async () => {
    const response = await post(`${controls}/companies`, {
      clientId: 'a:b',
      webhookUrl: 'ftp://shop.example',
      webhokSecret: 'misspelt',
    });
    expect(response.status).toBe(400);
    expect(await json(response)).toEqual({
      statusCode: 400,
      code: 'invalid_input',
      message: expect.any(String),
      problems: expect.arrayContaining([
        expect.stringMatching(/^clientId must be .* without a colon/),
        expect.stringMatching(/^webhookUrl must be an https:\/\/ URL/),
        'webhokSecret is not a field of this input',
      ]),
    });
    const text = { 'content-type': 'text/plain' };
    expect((await post(`${controls}/companies`, {}, text)).status).toBe(415);
    const json400 = await fetch(`${controls}/companies`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{',
    });
    expect(json400.status).toBe(400);
    const large = await post(`${controls}/companies`, { clientId: 'x'.repeat(1_100_000) });
    expect(large.status).toBe(413);
  });
});

it('the emulator serves none of its own endpoints under /v1', async () => {
  const token = await getToken(emulator, sandbox(emulator));
  for (const path of ['companies', 'reset', 'checkout-invoices', 'transactions']) {
    expect((await post(`${emulator.baseUrl}/v1/${path}`, {})).status).toBe(404);
  }
  expect((await get(`${emulator.baseUrl}/v1/transactions`, token)).status).toBe(404);
});

const payment = { amount: 1500, externalReference: 'order-77' };

describe('same-origin protection of the controls', () => {
  /** Sends a request with headers that `fetch` does not allow to set, and returns the status. */
  function status(
    headers: Record<string, string>,
    path = '/emulator/companies',
    method = 'GET',
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const url = `${emulator.baseUrl}${path}`;
      const request = httpRequest(url, { headers, method }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', reject).end();
    });
  }

  it('the emulator rejects requests from pages of other origins', async () => {
    expect(await status({ origin: 'https://evil.example' })).toBe(403);
    expect(await status({ origin: 'null' })).toBe(403);
    expect(await status({ origin: emulator.productionBaseUrl })).toBe(403);
    expect(await status({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).toBe(403);
    expect(await status({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' })).toBe(403);
  });

  it('the emulator rejects a form sent by another site, even without an Origin header', async () => {
    const { transactionId } = emulator.createCheckoutInvoice(payment);
    const form = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    const path = `/emulator/checkout/${transactionId}/cancel`;
    expect(await status(form, path, 'POST')).toBe(403);
    expect(await status({}, path, 'POST')).toBe(303);
  });

  it('the emulator accepts forms only on the checkout page', async () => {
    const form = { body: 'eventType=x.y', method: 'POST' };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await fetch(`${emulator.baseUrl}/emulator/events`, { ...form, headers })).status).toBe(
      415,
    );
  });

  it('the emulator rejects requests from pages of other origins to percent-encoded paths', async () => {
    const origin = 'https://evil.example';
    expect(await status({ origin }, '/%65mulator/companies')).toBe(403);
  });

  it('the emulator rejects unknown host names, as in DNS rebinding', async () => {
    expect(await status({ host: 'evil.example' })).toBe(403);
    expect(await status({ host: 'evil.example', origin: 'http://evil.example' })).toBe(403);
    expect(await status({ host: 'localhost.evil.example' })).toBe(403);
  });

  it("the emulator accepts requests from programs and from the emulator's own pages", async () => {
    const { port } = new URL(emulator.baseUrl);
    expect(await status({})).toBe(200);
    expect(await status({ origin: emulator.baseUrl })).toBe(200);
    const localhost = { host: `localhost:${port}`, origin: `http://localhost:${port}` };
    expect(await status(localhost)).toBe(200);
    expect(await status({ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' })).toBe(200);
  });

  it('the emulator allows links from other sites to the checkout page', async () => {
    const { transactionId } = emulator.createCheckoutInvoice(payment);
    const navigation = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect(await status(navigation, `/emulator/checkout/${transactionId}`)).toBe(200);
  });

  it('the emulator accepts the host name of the public URL', async () => {
    await using published = await PaymentsEmulator.start({ publicUrl: 'http://emulator:4010' });
    const { port } = new URL(published.productionBaseUrl);
    expect(published.baseUrl).toBe('http://emulator:4010');
    expect(published.createCheckoutInvoice(payment).checkoutUrl).toMatch(
      /^http:\/\/emulator:4010\/emulator\/checkout\//,
    );
    expect(port).not.toBe('4010');
  });
});
