import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { LookupAll, PaymentsEmulatorOptions } from 'payments-emulator';
import { get, getToken, post } from '../../support/emulator/api-client.js';
import { commandInProcess, emulatorInProcess } from '../../support/emulator/emulator-in-process.js';
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
  ['POST', '/deliveries'],
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

  it('SE-14 the control token does not permit requests from pages of other origins, although a browser sends the token automatically', async () => {
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

  it.each(['10.1.2.3', '::ffff:10.0.0.1'])(
    'SE-14 a webhook URL whose host name resolves to %s is rejected at the start and by the controls',
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

  it('SE-14 an emulator that other machines can reach resolves and checks the webhook URL again for each delivery', async () => {
    const lookup = resolving('192.0.2.77', '127.0.0.1');
    await using emulator = await start({ webhookUrl, lookup });
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    expect(emulator.deliveries()).toMatchObject([
      { state: 'failed', failure: { code: 'private_host' }, response: undefined },
    ]);
  });

  it('SE-14 a webhook URL may be private with allowPrivateWebhooks, and the log keeps only a part of each response', async () => {
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
});

/** A non-loopback IPv4 address of this machine; without a network, the loopback address. */
const address =
  Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address ?? '127.0.0.1';

/** Starts an emulator on all addresses. Resolves with its output, its token, and its URL at `address`. */
async function startRemote(...flags: string[]) {
  const { out } = await emulatorInProcess('--host', '0.0.0.0', ...flags);
  const [, token = ''] = /^ {2}token {7}(\S+) /m.exec(out) ?? [];
  const [, port = ''] = /^export PAYMENTS_BASE_URL=http:\/\/127\.0\.0\.1:(\d+)$/m.exec(out) ?? [];
  return { out, token, url: `http://${address}:${port}` };
}

/** Headers of a browser that requests a page. */
const page = { accept: 'text/html' };

describe('SE-14 the payments-emulator command with --host 0.0.0.0', () => {
  it('SE-14 payments-emulator --host 0.0.0.0 prints a new control token and requires it for pages, controls and secrets', async () => {
    const { out, token, url } = await startRemote();
    expect(token).toMatch(/^ctl_[0-9a-f]{32}$/);
    const [, secret] = /^export PAYMENTS_WEBHOOK_SECRET=(.+)$/m.exec(out) ?? [];
    expect(secret).toMatch(/^whsec_/);
    for (const headers of [{}, page, { authorization: 'Bearer ctl_wrong-wrong-wrong' }]) {
      const response = await fetch(`${url}/emulator`, {
        headers: headers as Record<string, string>,
      });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm="payments-emulator/);
      expect(await response.text()).toContain('control token is');
    }
    const companies = await fetch(`${url}/emulator/companies`);
    expect([companies.status, (await companies.text()).includes(secret!)]).toEqual([401, false]);

    const bearer = { authorization: `Bearer ${token}` };
    const basic = { authorization: `Basic ${Buffer.from(`any:${token}`).toString('base64')}` };
    for (const headers of [bearer, basic]) {
      const known = await fetch(`${url}/emulator/companies`, { headers });
      expect([known.status, (await known.text()).includes(secret!)]).toEqual([200, true]);
      const opened = await fetch(`${url}/emulator`, { headers: { ...headers, ...page } });
      expect(opened.status).toBe(200);
      expect(await opened.text()).toContain('<title>Payments · payments-emulator');
      const described = await fetch(`${url}/emulator`, { headers });
      expect(await described.text()).not.toContain(token);
    }
    const again = await startRemote();
    expect(again.token).not.toBe(token);
  });

  it('SE-14 payments-emulator --host 0.0.0.0 requires a given token, and prints a trigger command that works', async () => {
    await using receiver = await WebhookReceiver.start();
    const flags = ['--control-token', "it's-a-given-token", '--allow-private-webhooks'];
    const { out, token } = await startRemote(...flags, '--webhook-url', receiver.url);
    expect(token).toBe("it's-a-given-token");
    const [, trigger = ''] = /^ {2}payments-emulator (trigger .+)$/m.exec(out) ?? [];
    expect(trigger).toMatch(/ --control-token 'it'\\''s-a-given-token'$/);
    const args = trigger.split(' ').map((arg) => arg.replace(/^'.+'$/, token));
    const done = await commandInProcess(...args);
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(receiver.received).toHaveLength(1);
    const without = await commandInProcess(...args.slice(0, -2));
    expect(without).toMatchObject({ code: 1, out: '' });
    expect(without.err).toMatch(/requires its control token.*--control-token/);
  });

  it('SE-14 payments-emulator on a loopback address requires no control token, unless a token is given', async () => {
    const { emulator: open, out } = await emulatorInProcess();
    expect((await fetch(`${open.baseUrl}/emulator/companies`)).status).toBe(200);
    expect(out).not.toMatch(/^ {2}token /m);
    const { emulator: closed } = await emulatorInProcess('--control-token', 'a-given-token-of-us');
    expect((await fetch(`${closed.baseUrl}/emulator/companies`)).status).toBe(401);
  });
});

describe('SE-14 the payments-emulator command with NODE_ENV=production', () => {
  const { NODE_ENV } = process.env;
  beforeAll(() => {
    process.env['NODE_ENV'] = 'production';
  });
  afterAll(() => {
    process.env['NODE_ENV'] = NODE_ENV;
  });

  it('SE-14 the payments-emulator command with NODE_ENV=production exits with 2 and names the flag --allow-production', async () => {
    expect(await commandInProcess()).toEqual({
      code: 2,
      out: '',
      err:
        'payments-emulator: --allow-production is needed to start with NODE_ENV=production, because the emulator signs ' +
        'events of payments that never happened\npayments-emulator --help lists the flags.\n',
    });
  });

  it('SE-14 the payments-emulator command with NODE_ENV=production starts with --allow-production', async () => {
    const { out } = await emulatorInProcess('--allow-production');
    expect(out).toMatch(/^export PAYMENTS_BASE_URL=/m);
  });
});
