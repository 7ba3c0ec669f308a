import { expect, it, jest } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { press } from '../support/emulator/delivery-log-page.js';
import { get, getToken, json, requestToken, sandbox } from '../support/emulator/api-client.js';
import { faultSwitch, openFaults } from '../support/emulator/fault-switches.js';
import { useEmulator } from '../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../support/emulator/webhook-receiver.js';
import { signatureOf } from '../support/emulator/webhook-receiver.js';
import { eventually } from '../support/time/waiting.js';

jest.setTimeout(60_000);

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started));

describeInBrowser('fault switches on the page', (browser) => {
  it('the fault switches switch on the delivery faults drop, duplicate and tampering', async () => {
    const page = await browser().page();
    await openFaults(page, emulator);
    const hasValidSignature = () => {
      const { body, headers } = receiver.first;
      return headers['x-webhook-signature'] === signatureOf(body, emulator.company.webhookSecret);
    };
    const sendWithFault = async (name: string): Promise<void> => {
      receiver.received.length = 0;
      const fault = faultSwitch(page, 'delivery', name);
      await fault.switchOn();
      const before = emulator.deliveries().length;
      emulator.sendEvent({ eventType: 'x.y' });
      await eventually(() => expect(emulator.deliveries().length).toBeGreaterThan(before));
      await emulator.idle();
      await fault.switch.click();
      await page.getByText('No fault is on').waitFor();
    };
    await sendWithFault('drop');
    expect(receiver.received).toHaveLength(0);
    expect(emulator.deliveries().map(({ state }) => state)).toEqual(['dropped']);
    await sendWithFault('duplicate');
    expect(receiver.received).toHaveLength(2);
    for (const fault of ['tamperBody', 'tamperSignature', 'oldSecret']) {
      await sendWithFault(fault);
      expect([fault, receiver.received.length, hasValidSignature()]).toEqual([fault, 1, false]);
    }
    receiver.received.length = 0;
    emulator.sendEvent({ eventType: 'x.y' });
    await eventually(() => expect(receiver.received).toHaveLength(1));
    expect(hasValidSignature()).toBe(true);
  });

  it('the fault switches switch on faults of the token endpoint and of API calls', async () => {
    const page = await browser().page();
    await openFaults(page, emulator);
    const on = (target: string, fault: string) => faultSwitch(page, target, fault).switchOn();
    const off = async (): Promise<void> => {
      await press(page, 'All faults off');
      await page.getByText('No fault is on').waitFor();
      expect(emulator.faults()).toEqual({});
    };
    const { transactionId } = emulator.createPayout({ amount: 1, externalReference: 'x' });
    const token = await getToken(emulator);
    const call = () => get(`${emulator.baseUrl}/v1/transactions/${transactionId}`, token);

    await on('token', 'error');
    expect((await requestToken(sandbox(emulator))).status).toBe(503);
    await off();
    await on('token', 'rateLimit');
    expect((await requestToken(sandbox(emulator))).status).toBe(429);
    await off();
    await on('token', 'lifetime');
    expect(await json(requestToken(sandbox(emulator)))).toMatchObject({ expires_in: '20' });
    await off();
    await on('api', 'unauthorized');
    expect((await call()).status).toBe(401);
    await off();
    await on('api', 'reset');
    await expect(call()).rejects.toThrow();
    await off();
    await on('api', 'truncate');
    await expect(call().then((response) => response.text())).rejects.toThrow();
    await off();
    await on('api', 'oversize');
    await faultSwitch(page, 'api', 'oversize').set('bytes', '5000');
    await eventually(() =>
      expect(emulator.faults().api).toMatchObject({ oversize: { bytes: 5000 } }),
    );
    expect((await (await call()).text()).length).toBe(5000);
    await off();
    expect((await call()).status).toBe(200);
  });
});
