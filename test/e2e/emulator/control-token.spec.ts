import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { LookupAll, PaymentsEmulatorOptions } from 'payments-emulator';
import { get, getToken, post } from '../../support/emulator/api-client.js';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const CONTROLS: readonly (readonly [method: string, path: string])[] = [
  ['GET', ''],
  ['GET', '/stk'],
  ['GET', '/overview'],
  ['POST', '/companies'],
  ['GET', '/companies'],
  ['GET', '/companies/default'],
  ['PUT', '/companies/default/webhook'],
  ['POST', '/companies/default/webhook-secret'],
  ['POST', '/companies/default/client-secret'],
  ['POST', '/companies/default/revoke-tokens'],
  ['GET', '/companies/default/faults'],
  ['PUT', '/companies/default/faults'],
  ['PUT', '/companies/default/faults/api/error'],
  ['DELETE', '/companies/default/faults/api/error'],
  ['POST', '/transactions'],
  ['GET', '/transactions'],
  ['GET', '/transactions/x'],
  ['POST', '/transactions/x/complete'],
  ['POST', '/transactions/x/fail'],
  ['POST', '/events'],
  ['POST', '/trigger'],
  ['GET', '/deliveries'],
  ['GET', '/deliveries/search'],
  ['GET', '/deliveries/x'],
  ['POST', '/deliveries/x/redeliver'],
  ['POST', '/deliveries/flush'],
  ['POST', '/reset'],
];
const payment = { amount: 1500, externalReference: 'order-77' };

describe('SE-14 the control token of an emulator that listens on all addresses', () => {
  let emulator: PaymentsEmulator;
  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ host: '0.0.0.0' });
  });
  afterAll(() => emulator.close());
  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    fetch(`${emulator.baseUrl}${path}`, { method, headers });
  const token = () => ({ authorization: `Bearer ${emulator.controlToken}` });

  it.each(CONTROLS)(
    'SE-14 the control token is required for %s /emulator%s, on both hosts',
    async (method, path) => {
      for (const host of [emulator.baseUrl, emulator.productionBaseUrl]) {
        expect((await fetch(`${host}/emulator${path}`, { method })).status).toBe(401);
      }
      expect((await ask(method, `/%65mulator${path}`)).status).toBe(401);
      if (path !== '/reset')
        expect((await ask(method, `/emulator${path}`, token())).status).not.toBe(401);
    },
  );

  it('SE-14 the control token is not required by the endpoints that require an access token', async () => {
    const access = await getToken(emulator);
    const invoices = `${emulator.baseUrl}/emulator/checkout-invoices`;
    const bearer = { authorization: `Bearer ${access}` };
    expect((await post(invoices, payment, bearer)).status).toBe(201);
    expect((await post(invoices, payment, token())).status).toBe(401);
    expect((await get(`${emulator.baseUrl}/v1/transactions/none`, access)).status).toBe(404);
  });

  it('SE-14 the control token is not required by the checkout page and its styles; the page does not link to the log', async () => {
    const { checkoutUrl, transactionId } = emulator.createCheckoutInvoice(payment);
    const page = await (await fetch(checkoutUrl)).text();
    expect(page).toContain('order-77');
    expect(page).not.toContain('href="/emulator"');
    expect(page).not.toContain('href="/emulator?');
    expect((await ask('GET', '/emulator/pages/base.css')).status).toBe(200);
    const moved = await fetch(`${checkoutUrl}/cancel`, { method: 'POST', redirect: 'manual' });
    expect([moved.status, moved.headers.get('location')]).toEqual([
      303,
      `/emulator/checkout/${transactionId}`,
    ]);
    const unknown = await ask('GET', '/emulator/checkout/none');
    expect([unknown.status, await unknown.text()]).toEqual([
      404,
      expect.not.stringContaining('href="/emulator"'),
    ]);
  });

  it('SE-14 the emulator throttles wrong control tokens, but never the valid one', async () => {
    const wrong = { authorization: 'Bearer ctl_another-token-of-nobody' };
    const statuses: number[] = [];
    for (let n = 0; n < 15; n += 1)
      statuses.push((await ask('GET', '/emulator/overview', wrong)).status);
    expect(statuses.at(0)).toBe(401);
    expect(statuses.at(-1)).toBe(429);
    expect((await ask('GET', '/emulator/overview', token())).status).toBe(200);
  });

  it('SE-14 the control token does not permit pages of other origins, although a browser sends it automatically', async () => {
    const headers = { ...token(), origin: 'https://evil.example' };
    expect((await ask('GET', '/emulator/overview', headers)).status).toBe(403);
  });
});

describe('SE-14 the webhook URL of an emulator that other machines can reach', () => {
  /** Creates a lookup that returns these addresses one after the other, and then always the last one. */
  const resolving = (...addresses: string[]): LookupAll => {
    let asked = 0;
    return (_hostname, _options, callback) => {
      const address = addresses[Math.min(asked++, addresses.length - 1)]!;
      callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
    };
  };
  const start = (options: PaymentsEmulatorOptions) =>
    PaymentsEmulator.start({ host: '0.0.0.0', ...options });
  const webhookUrl = 'https://shop.example/webhooks';

  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '::1',
    'fe80::1',
    'fd00::1',
    '::ffff:10.0.0.1',
  ])(
    'SE-14 a webhook URL is rejected at the start and by a control if its host name resolves to %s',
    async (address) => {
      const lookup = resolving(address);
      await expect(start({ webhookUrl, lookup })).rejects.toThrow(/^webhookUrl must not point to/);
      await using emulator = await start({ lookup });
      const headers = { authorization: `Bearer ${emulator.controlToken}` };
      const companies = `${emulator.baseUrl}/emulator/companies`;
      const created = await post(companies, { companyId: 'a', webhookUrl }, headers);
      expect(created.status).toBe(400);
      const body = JSON.stringify({ url: webhookUrl });
      const put = await fetch(`${companies}/default/webhook`, {
        method: 'PUT',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
      });
      expect([put.status, await put.text()]).toEqual([
        400,
        expect.stringContaining('url must not point to'),
      ]);
      expect(emulator.companies()).toHaveLength(1);
      expect(emulator.company.webhook.url).toBeNull();
    },
  );

  it('SE-14 the webhook URL of a reachable emulator is resolved and checked again for each delivery', async () => {
    const lookup = resolving('192.0.2.77', '127.0.0.1');
    await using emulator = await start({ webhookUrl, lookup });
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    expect(emulator.deliveries()).toMatchObject([
      { state: 'failed', failure: { code: 'private_host' }, response: undefined },
    ]);
  });

  it('SE-14 a webhook URL may be private with allowPrivateWebhooks; the log keeps a part of the responses', async () => {
    await using receiver = await WebhookReceiver.start();
    receiver.respond = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/plain', 'x-inner': '1' })
        .end('a'.repeat(900));
    await using emulator = await start({ webhookUrl: receiver.url, allowPrivateWebhooks: true });
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const [delivery] = emulator.deliveries();
    expect(delivery!.response).toEqual({
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: 'a'.repeat(256),
    });
  });

  it('a webhook URL may point to this machine if only this machine can reach the emulator', async () => {
    await using receiver = await WebhookReceiver.start();
    await using emulator = await PaymentsEmulator.start({ webhookUrl: receiver.url });
    receiver.respond = (_, response) =>
      response.writeHead(200, { 'x-id': '7' }).end('a'.repeat(900));
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const [delivery] = emulator.deliveries();
    expect(delivery!.response).toMatchObject({ headers: { 'x-id': '7' }, body: 'a'.repeat(900) });
    expect(emulator.controlToken).toBeUndefined();
  });
});
