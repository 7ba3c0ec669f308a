import { request as httpRequest } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

const payment = { amount: 1500, externalReference: 'order-77' };
let emulator: PaymentsEmulator;

useEmulator((started) => ({ emulator } = started));

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

  it('the emulator accepts forms only at the checkout', async () => {
    const form = { body: 'eventType=x.y', method: 'POST' };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await fetch(`${emulator.baseUrl}/emulator/events`, { ...form, headers })).status).toBe(
      415,
    );
  });

  it('the emulator applies to percent-encoded paths', async () => {
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

  it('the emulator allows links from other sites to the checkout', async () => {
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
