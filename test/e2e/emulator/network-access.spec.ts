import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { commandInProcess, emulatorInProcess } from '../../support/emulator/emulator-command.js';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

/** A non-loopback IPv4 address of this machine; without a network, the loopback address. */
const address =
  Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address ?? '127.0.0.1';

/** Starts an emulator on all addresses. Resolves with what it printed, its token, and its URL at `address`. */
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

  it('SE-14 payments-emulator --host 0.0.0.0 requires no token on a loopback address, unless one is given', async () => {
    const { emulator: open, out } = await emulatorInProcess();
    expect((await fetch(`${open.baseUrl}/emulator/companies`)).status).toBe(200);
    expect(out).not.toMatch(/^ {2}token /m);
    const { emulator: closed } = await emulatorInProcess('--control-token', 'a-given-token-of-us');
    expect((await fetch(`${closed.baseUrl}/emulator/companies`)).status).toBe(401);
  });

  it.each(['http://127.0.0.1:3000/webhooks', 'https://10.0.0.1/webhooks'])(
    'SE-14 payments-emulator --host 0.0.0.0 does not start with the webhook URL %s',
    async (webhookUrl) => {
      const flags = ['--host', '0.0.0.0', '--webhook-url', webhookUrl];
      const started = await commandInProcess(...flags);
      expect(started).toMatchObject({ code: 2, out: '' });
      expect(started.err).toMatch(/--webhook-url must not point to .*--allow-private-webhooks/);
    },
  );

  it('SE-14 payments-emulator --host 0.0.0.0 rejects private webhook URLs unless --allow-private-webhooks is set', async () => {
    await using receiver = await WebhookReceiver.start();
    const set = async ({ url, token }: { url: string; token: string }, webhook: string) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ url: webhook });
      return fetch(`${url}/emulator/companies/default/webhook`, { method: 'PUT', headers, body });
    };
    const closed = await startRemote();
    const refused = await set(closed, receiver.url);
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('--allow-private-webhooks'),
    ]);
    const allowed = await startRemote('--allow-private-webhooks');
    expect((await set(allowed, receiver.url)).status).toBe(200);
    expect((await set(allowed, 'http://shop:3000/webhooks')).status).toBe(200);
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

  it('SE-14 the payments-emulator command with NODE_ENV=production exits with 2 and names the flag that allows it', async () => {
    expect(await commandInProcess()).toEqual({
      code: 2,
      out: '',
      err:
        'payments-emulator: --allow-production is needed to start with NODE_ENV=production: the emulator signs ' +
        'events of payments that never happened\npayments-emulator --help lists the flags.\n',
    });
  });

  it('SE-14 the payments-emulator command with NODE_ENV=production starts with --allow-production', async () => {
    const { out } = await emulatorInProcess('--allow-production');
    expect(out).toMatch(/^export PAYMENTS_BASE_URL=/m);
  });
});
