import { createServer } from 'node:https';
import type { Server } from 'node:https';
import { request } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { RunningShop, settingsFor } from '../../support/shop/running-shop.js';

// A self-signed certificate for localhost, valid for 100 years: `openssl req -x509 -newkey ec …`.
const file = (name: string) =>
  fileURLToPath(new URL(`../../support/http/tls/${name}`, import.meta.url));
const CERTIFICATE = file('localhost-cert.pem');

describe('the API client over TLS', () => {
  let emulator: PaymentsEmulator;
  let service: Server;
  let baseUrl: string;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'tls' });
    const key = readFileSync(file('localhost-key.pem'));
    service = createServer({ key, cert: readFileSync(CERTIFICATE) }, (incoming, outgoing) => {
      const { method, url, headers } = incoming;
      const onward = request(new URL(url!, emulator.baseUrl), { method, headers }, (response) => {
        outgoing.writeHead(response.statusCode!, response.headers);
        response.pipe(outgoing);
      });
      onward.on('error', () => outgoing.destroy());
      incoming.pipe(onward);
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    baseUrl = `https://localhost:${(service.address() as AddressInfo).port}`;
  });

  afterAll(async () => {
    service?.closeAllConnections();
    service?.close();
    await emulator?.close();
  });

  it('the API client calls a service with a trusted certificate, and records the payment of the order', async () => {
    await using shop = await RunningShop.start({
      ...settingsFor(emulator),
      PAYMENTS_BASE_URL: baseUrl,
      NODE_EXTRA_CA_CERTS: CERTIFICATE,
    });
    emulator.setWebhook({ url: shop.webhookUrl });
    expect((await shop.createOrder('encrypted', 25)).checkoutUrl).toEqual(expect.any(String));
    const { transactionId } = emulator.createStkPush({
      amount: 25,
      externalReference: 'encrypted',
    });
    emulator.complete(transactionId);
    await shop.recorded('encrypted', [25]);
  });

  it('the API client sends no request to a service with an untrusted certificate', async () => {
    await using shop = await RunningShop.start({
      ...settingsFor(emulator),
      PAYMENTS_BASE_URL: baseUrl,
    });
    let reached = 0;
    service.on('request', () => reached++);
    expect((await shop.createOrder('untrusted', 25)).checkoutUrl).toBeNull();
    expect(reached).toBe(0);
    await shop.process.prints(/SELF_SIGNED_CERT/);
  });
});
