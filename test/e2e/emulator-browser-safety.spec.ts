import { expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { describeInBrowser } from '../support/browser/test-browser.js';
import {
  openLog,
  openTab,
  press,
  showsTypes,
  tabUrl,
} from '../support/emulator/delivery-log-page.js';
import { useEmulator } from '../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../support/emulator/webhook-receiver.js';
import { eventually } from '../support/time/waiting.js';

jest.setTimeout(60_000);

const payment = { amount: 1250, externalReference: 'order-77' };
const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started));

describeInBrowser('security and accessibility of the delivery log', (browser) => {
  it('the delivery log escapes markup in bodies, headers and responses', async () => {
    receiver.respond = (_, response) => response.writeHead(200, { 'x-shop': MARKUP }).end(MARKUP);
    emulator.sendEvent({ eventType: `x.${MARKUP.replaceAll(' ', '')}`, data: { MARKUP } });
    emulator.createStkPush({ ...payment, externalReference: MARKUP });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page, emulator);
    await page.locator('.line').first().click();
    await page.getByLabel('Format as JSON: Request body').check();
    expect(await page.getByLabel('Request body', { exact: true }).innerText()).toContain(
      '<script>',
    );
    expect(await page.getByLabel('Response body', { exact: true }).innerText()).toBe(MARKUP);
    expect(await page.getByLabel('Response headers').innerText()).toContain(MARKUP);
    await page.getByText(MARKUP, { exact: true }).first().waitFor();
    expect(await page.locator('img, #page script').count()).toBe(0);
    expect(await page.evaluate('window.ran')).toBeUndefined();
  });

  it('the delivery log loads no secret before the user shows the credentials', async () => {
    const { clientSecret, webhookSecret } = emulator.company;
    const page = await browser().page();
    const received: string[] = [];
    page.on('response', (response) => {
      void response.text().then(
        (text) => received.push(text),
        () => undefined,
      );
    });
    await openLog(page, emulator);
    await press(page, 'Send a test webhook');
    await showsTypes(page, 'webhook.test');
    expect(received.length).toBeGreaterThan(0);
    expect(received.join()).not.toContain(webhookSecret);
    expect(received.join()).not.toContain(clientSecret);
    await openTab(page, 'Payments');
    await openTab(page, 'Faults');
    await openTab(page, 'Credentials');
    await page.getByRole('button', { name: 'Show the credentials' }).waitFor();
    expect(received.join()).not.toContain(webhookSecret);
    expect(received.join()).not.toContain(clientSecret);
    await press(page, 'Show the credentials');
    await page.getByText(webhookSecret).waitFor();
    await page.getByText(clientSecret, { exact: true }).waitFor();
    await press(page, 'Hide the credentials');
    await page.getByText(webhookSecret).waitFor({ state: 'detached' });
  });

  it('the delivery log shows that the emulator is not reachable, and continues automatically afterwards', async () => {
    const first = await PaymentsEmulator.start();
    const port = Number(new URL(first.baseUrl).port);
    first.sendEvent({ eventType: 'before' });
    const page = await browser().page();
    await page.goto(tabUrl(first, 'deliveries'));
    await showsTypes(page, 'before');
    await first.close();
    await page
      .getByText(/not been reachable since \d\d:\d\d:\d\d\. The page keeps trying/)
      .waitFor();
    await showsTypes(page, 'before');
    await press(page, 'Send a test webhook');
    await page.getByRole('alert').getByText('the outcome is unknown').waitFor();
    await using second = await PaymentsEmulator.start({ port });
    second.sendEvent({ eventType: 'after' });
    await showsTypes(page, 'after');
    await page.getByText('The page keeps trying').waitFor({ state: 'detached' });
  });

  it('the delivery log works with the keyboard only', async () => {
    const page = await browser().page();
    await openLog(page, emulator);
    const tabTo = async (name: RegExp): Promise<void> => {
      for (let stop = 0; stop < 60; stop++) {
        await page.keyboard.press('Tab');
        const text = await page.evaluate('document.activeElement.innerText ?? ""');
        if (name.test(String(text))) return;
      }
      throw new Error(`no way to ${String(name)} by Tab`);
    };
    await tabTo(/^Send a test webhook$/);
    await page.keyboard.press('Enter');
    await showsTypes(page, 'webhook.test');
    await page.keyboard.press('Home');
    await page.locator('h1').click();
    await tabTo(/webhook\.test/);
    await page.keyboard.press('Space');
    await page.getByLabel('Request body', { exact: true }).waitFor();
    await tabTo(/^Redeliver$/);
    await page.keyboard.press('Enter');
    await showsTypes(page, 'webhook.test', 'webhook.test');
    // The log shows an attempt before it is sent.
    await eventually(() => expect(receiver.received).toHaveLength(2));
  });
});
