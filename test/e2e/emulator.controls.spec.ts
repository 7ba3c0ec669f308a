import { request as httpRequest } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { get, getToken, json, post, put, requestToken, sandbox } from './emulator.client.js';
import type { Receiver } from './emulator.receiver.js';
import { stageEmulator } from './emulator.stage.js';

const payment = { amount: 1500, externalReference: 'order-77' };
let receiver: Receiver;
let emulator: PaymentsEmulator;
let controls: string;

stageEmulator((stage) => {
  ({ receiver, emulator } = stage);
  controls = `${emulator.baseUrl}/emulator`;
});

describe('the controls over HTTP', () => {
  it('create a company, ready to use, and show it', async () => {
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

  it('answer 409 to an id or a client id that is taken, and 404 to one that is not there', async () => {
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

  it('set the webhook, a part of it at a time', async () => {
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

  it('rotate both kinds of secret', async () => {
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

  it('revoke tokens', async () => {
    const token = await getToken(emulator);
    expect((await post(`${controls}/companies/default/revoke-tokens`)).status).toBe(204);
    expect((await get(`${emulator.baseUrl}/v1/transactions/none`, token)).status).toBe(401);
  });

  it('set and show faults', async () => {
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

  it('answer 400 to a body that is nested deeper than can be read, and take one that is not', async () => {
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

  it('create a transaction of any kind, complete it, and deliver the event', async () => {
    for (const kind of ['stk-push', 'checkout-invoice', 'payout']) {
      const created = await json(post(`${controls}/transactions`, { kind, ...payment }));
      expect(created).toMatchObject({ kind, status: 'pending', environment: 'sandbox' });
      expect('checkoutUrl' in created).toBe(kind === 'checkout-invoice');
      const url = `${controls}/transactions/${created['transactionId']}/complete`;
      const completed = await json(post(url));
      expect(completed['transaction']).toMatchObject({ kind, status: 'complete' });
      expect((await post(url)).status).toBe(409);
    }
    await emulator.idle();
    expect(receiver.received).toHaveLength(3);
    expect((await post(`${controls}/transactions`, { kind: 'loan', ...payment })).status).toBe(400);
  });

  it('decline a transaction: its status says so, no event tells of it, and it stays declined', async () => {
    const { transactionId } = emulator.createStkPush(payment);
    const url = `${controls}/transactions/${transactionId}`;
    expect(await json(post(`${url}/fail`))).toMatchObject({ status: 'failed', transactionId });
    expect(emulator.transaction(transactionId).failedAt).toMatch(/^\d{4}-.*Z$/);
    for (const end of ['fail', 'complete']) {
      const again = await post(`${url}/${end}`);
      expect(again.status).toBe(409);
      expect((await json(again))['message']).toContain('has failed already');
    }
    await emulator.idle();
    expect(emulator.deliveries()).toEqual([]);
  });

  it('show transactions, narrowed down', async () => {
    emulator.createCompany({ companyId: 'other' });
    const paid = emulator.createStkPush(payment);
    emulator.complete(paid.transactionId);
    const open = emulator.createStkPush(payment);
    const failed = emulator.createPayout({ ...payment, companyId: 'other' });
    emulator.fail(failed.transactionId);
    const found = async (query: string) => {
      const answer = await get(`${controls}/transactions?${query}`);
      return ((await answer.json()) as { transactionId: string }[]).map(
        (each) => each.transactionId,
      );
    };
    const ids = [paid, open, failed].map(({ transactionId }) => transactionId);
    expect(await found('')).toEqual(ids);
    expect(await found('open=true')).toEqual([open.transactionId]);
    expect(await found('open=false')).toEqual([paid.transactionId, failed.transactionId]);
    expect(await found('kind=stk-push')).toEqual(ids.slice(0, 2));
    expect(await found('companyId=other')).toEqual([failed.transactionId]);
    expect(await found('limit=1')).toEqual(ids.slice(-1));
    expect((await get(`${controls}/transactions?open=maybe`)).status).toBe(400);
  });

  it('take a phone number as people type it, and an address a page may link to', async () => {
    const given = { phoneNumber: '+1 (555) 010-0123', returnUrl: 'https://shop.example/orders/7' };
    expect(emulator.createStkPush({ ...payment, ...given })).toMatchObject({
      phoneNumber: '+15550100123',
      returnUrl: given.returnUrl,
    });
    for (const returnUrl of ['javascript:alert(1)', '/orders/7', 'https://u:p@shop.example/']) {
      expect(() => emulator.createCheckoutInvoice({ ...payment, returnUrl })).toThrow('returnUrl');
    }
    for (const phoneNumber of ['12', 'mine', '1234567890123456']) {
      expect(() => emulator.createStkPush({ ...payment, phoneNumber })).toThrow('phoneNumber');
    }
  });

  it('create in the environment of the host that was called', async () => {
    const url = `${emulator.productionBaseUrl}/emulator/transactions`;
    const created = await json(post(url, { kind: 'checkout-invoice', ...payment }));
    expect(created['environment']).toBe('production');
    expect(created['checkoutUrl']).toContain(emulator.productionBaseUrl);
  });

  it('send an event of any type', async () => {
    const sent = await json(post(`${controls}/events`, { eventType: 'x.y', data: { a: 1 } }));
    await emulator.idle();
    expect(receiver.first.event).toEqual(sent);
    expect((await post(`${controls}/events`, { eventType: 'x\ny' })).status).toBe(400);
  });

  it('show the delivery log, narrowed down, and redeliver', async () => {
    receiver.answerWith(500, 200);
    const event = emulator.sendEvent({ eventType: 'one' });
    await emulator.idle();
    emulator.sendEvent({ eventType: 'two' });
    await emulator.idle();
    const failed = await get(`${controls}/deliveries?state=failed&limit=5`);
    const deliveries = (await failed.json()) as { id: string; eventId: string }[];
    expect(deliveries.map(({ eventId }) => eventId)).toEqual([event.id]);
    const url = `${controls}/deliveries/${deliveries[0]?.id}`;
    expect(await json(get(url))).toMatchObject({ eventType: 'one', answer: { status: 500 } });
    expect(await json(post(`${url}/redeliver`))).toMatchObject({
      eventId: event.id,
      cause: 'redelivery',
      state: 'delivered',
    });
    expect((await get(`${controls}/deliveries?state=lost`)).status).toBe(400);
    expect((await get(`${controls}/deliveries?limit=many`)).status).toBe(400);
  });

  it('cut waits short', async () => {
    emulator.setFaults({ delivery: { delay: { ms: 3_600_000 } } });
    emulator.sendEvent({ eventType: 'x' });
    expect((await post(`${controls}/deliveries/flush`)).status).toBe(204);
    expect(receiver.received).toHaveLength(1);
  });

  it('start over', async () => {
    emulator.createCompany();
    expect((await post(`${controls}/reset`)).status).toBe(204);
    expect(emulator.companies()).toHaveLength(1);
  });

  it('say what this is', async () => {
    expect(await json(get(controls))).toMatchObject({
      emulator: 'payments-emulator',
      environment: 'sandbox',
      url: emulator.baseUrl,
    });
  });

  it('refuse what is malformed, and name every field at fault', async () => {
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

describe('the controls and web pages', () => {
  /** A request with headers that fetch does not let a program set. */
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

  it('refuse requests of pages of other origins', async () => {
    expect(await status({ origin: 'https://evil.example' })).toBe(403);
    expect(await status({ origin: 'null' })).toBe(403);
    expect(await status({ origin: emulator.productionBaseUrl })).toBe(403);
    expect(await status({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).toBe(403);
    expect(await status({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' })).toBe(403);
  });

  it('refuse a form that another site sends, even where the browser names no origin', async () => {
    const { transactionId } = emulator.createCheckoutInvoice(payment);
    const form = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    const path = `/emulator/checkout/${transactionId}/cancel`;
    expect(await status(form, path, 'POST')).toBe(403);
    expect(await status({}, path, 'POST')).toBe(303);
  });

  it('take forms at the checkout alone', async () => {
    const form = { body: 'eventType=x.y', method: 'POST' };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await fetch(`${controls}/events`, { ...form, headers })).status).toBe(415);
  });

  it('refuse them under an escaped path as well', async () => {
    const origin = 'https://evil.example';
    expect(await status({ origin }, '/%65mulator/companies')).toBe(403);
  });

  it('refuse a name that somebody made point at this machine', async () => {
    expect(await status({ host: 'evil.example' })).toBe(403);
    expect(await status({ host: 'evil.example', origin: 'http://evil.example' })).toBe(403);
    expect(await status({ host: 'localhost.evil.example' })).toBe(403);
  });

  it('take requests of programs, and of their own pages', async () => {
    const { port } = new URL(emulator.baseUrl);
    expect(await status({})).toBe(200);
    expect(await status({ origin: emulator.baseUrl })).toBe(200);
    const localhost = { host: `localhost:${port}`, origin: `http://localhost:${port}` };
    expect(await status(localhost)).toBe(200);
    expect(await status({ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' })).toBe(200);
  });

  it("let the shop's page link to the checkout", async () => {
    const { transactionId } = emulator.createCheckoutInvoice(payment);
    const navigation = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect(await status(navigation, `/emulator/checkout/${transactionId}`)).toBe(200);
  });

  it('are served under the public URL', async () => {
    await using published = await PaymentsEmulator.start({ publicUrl: 'http://emulator:4010' });
    const { port } = new URL(published.productionBaseUrl);
    expect(published.baseUrl).toBe('http://emulator:4010');
    expect(published.createCheckoutInvoice(payment).checkoutUrl).toMatch(
      /^http:\/\/emulator:4010\/emulator\/checkout\//,
    );
    expect(port).not.toBe('4010');
  });
});

it('answers nothing of the emulator under /v1, and needs a token there', async () => {
  const token = await getToken(emulator, sandbox(emulator));
  for (const path of ['companies', 'reset', 'checkout-invoices', 'transactions']) {
    expect((await post(`${emulator.baseUrl}/v1/${path}`, {})).status).toBe(404);
  }
  expect((await get(`${emulator.baseUrl}/v1/transactions`, token)).status).toBe(404);
});
