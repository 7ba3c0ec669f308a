import { expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { describeInBrowser, tabTo } from '../../support/browser/test-browser.js';
import {
  entries,
  logSection,
  openLog,
  openTab,
  press,
  showsTypes,
  tabUrl,
} from '../../support/emulator/delivery-log-page.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { eventually } from '../../support/time/waiting.js';

const payment = { amount: 1250, externalReference: 'order-77' };
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started));

describeInBrowser('the delivery log in a browser', (browser) => {
  it('the delivery log explains what to do while it is empty, and shows new deliveries automatically', async () => {
    const page = await browser().page();
    await openLog(page, emulator);
    await page.getByText('No delivery yet.').waitFor();
    await page.getByText('Press “Send a test webhook”').waitFor();
    emulator.sendEvent({ eventType: 'x.y' });
    await showsTypes(page, 'x.y');
    expect(await page.getByText('No delivery yet.').count()).toBe(0);
  });

  it('the delivery log shows URL, headers, signature, body, status and duration, also after a reload', async () => {
    receiver.respond = (_, response) => response.writeHead(202, { 'x-shop': 'ours' }).end('thanks');
    const { transactionId } = emulator.createStkPush(payment);
    emulator.complete(transactionId);
    await emulator.idle();
    const [delivery] = emulator.deliveries();
    const page = await browser().page();
    await openLog(page, emulator);
    const line = entries(page).getByRole('button', { name: /transaction\.completed/ });
    await press(page, /transaction\.completed/);
    await page.getByText(`POST ${receiver.url}`).waitFor();
    const sent = page.getByLabel('Request headers');
    const signature = String(receiver.first.headers['x-webhook-signature']);
    expect(await sent.innerText()).toContain(signature);
    expect(await sent.innerText()).toContain('PaymentsEmulator-Webhook/1.0');
    const body = page.getByLabel('Request body', { exact: true });
    expect(await body.innerText()).toBe(String(receiver.first.body));
    await page.getByLabel('Format as JSON: Request body').check();
    expect(await body.innerText()).toBe(
      JSON.stringify(JSON.parse(String(receiver.first.body)), null, 2),
    );
    expect(await page.getByLabel('Response headers').innerText()).toContain('x-shop');
    expect(await page.getByLabel('Response body', { exact: true }).innerText()).toBe('thanks');
    await page.reload();
    await page.getByText(`POST ${receiver.url}`).waitFor();
    await line.click();
    await page.reload();
    await line.waitFor();
    expect(await page.getByText(`POST ${receiver.url}`).count()).toBe(0);
    expect(await line.innerText()).toContain('delivered 202');
    expect(await line.innerText()).toContain(`${delivery?.durationMs} ms`);
    const time = line.locator('time');
    expect(await time.getAttribute('datetime')).toBe(delivery?.sentAt);
    expect(await time.innerText()).toMatch(/^\d\d:\d\d:\d\d\.\d{3} \S+$/);
    await time.hover();
    expect(await time.getAttribute('title')).toMatch(/^(now|\d+ seconds? ago), 20/);
  });

  it('the delivery log formats JSON and keeps digits, escapes and duplicate keys', async () => {
    const body =
      '{"n":12345678901234567890.10,"n":1e2,"t":"\\u0041, {b}: \\"c\\"","none":[ ],"of":{}}';
    receiver.respond = (_, response) => response.writeHead(200).end(body);
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page, emulator);
    await press(page, /x\.y/);
    await page.getByLabel('Format as JSON: Response body').check();
    expect(await page.getByLabel('Response body', { exact: true }).innerText()).toBe(`{
  "n": 12345678901234567890.10,
  "n": 1e2,
  "t": "\\u0041, {b}: \\"c\\"",
  "none": [],
  "of": {}
}`);
  });

  it('redelivers, and shows the new attempt', async () => {
    receiver.respondWith(500, 200);
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page, emulator);
    await press(page, /failed 500/);
    await page
      .getByText(
        'status: the receiver responded 500; only a 2xx response acknowledges the delivery',
      )
      .waitFor();
    await press(page, 'Redeliver');
    await page.getByRole('button', { name: /delivered 200 .*redelivery, attempt 2/ }).waitFor();
    expect(receiver.received).toHaveLength(2);
    expect(receiver.received[1]?.body).toEqual(receiver.first.body);
  });

  it('the delivery log filters by company, state and text, and keeps the filter in its URL', async () => {
    emulator.createCompany({ companyId: 'other' });
    emulator.sendEvent({ eventType: 'a.one' });
    await emulator.idle();
    emulator.sendEvent({ eventType: 'b.two', companyId: 'other' });
    await emulator.idle();
    const paid = emulator.createPayout(payment);
    emulator.complete(paid.transactionId);
    await emulator.idle();
    const page = await browser().page();
    await openLog(page, emulator);
    await showsTypes(page, 'transaction.completed', 'b.two', 'a.one');
    await logSection(page).getByLabel('Company').selectOption('other');
    await showsTypes(page, 'b.two');
    await logSection(page).getByLabel('Company').selectOption('');
    await logSection(page).getByLabel('State').selectOption('delivered');
    await showsTypes(page, 'transaction.completed', 'a.one');
    await logSection(page).getByLabel('Reference, transaction, event or type').fill('A.ON');
    await showsTypes(page, 'a.one');
    await page.reload();
    await showsTypes(page, 'a.one');
    await logSection(page)
      .getByLabel('Reference, transaction, event or type')
      .fill(paid.transactionId);
    await showsTypes(page, 'transaction.completed');
  });

  it('the delivery log has pages of 25 attempts on a wide screen and of 10 on a phone', async () => {
    for (let number = 1; number <= 60; number++) emulator.sendEvent({ eventType: `n.${number}` });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page, emulator);
    await eventually(async () => expect(await entries(page).count()).toBe(25));
    await press(page, 'Older');
    await showsTypes(page, ...Array.from({ length: 25 }, (_, index) => `n.${35 - index}`));
    await press(page, 'Older');
    await showsTypes(page, ...Array.from({ length: 10 }, (_, index) => `n.${10 - index}`));
    await press(page, 'Newest');
    await eventually(async () => expect(await entries(page).count()).toBe(25));
    const phone = await browser().page({ viewport: { width: 390, height: 844 } });
    await openLog(phone, emulator);
    await eventually(async () => expect(await entries(phone).count()).toBe(10));
  });
});

const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';

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

  it('the delivery log sends a test webhook and redelivers it with the keyboard only', async () => {
    const page = await browser().page();
    await openLog(page, emulator);
    await tabTo(page, page.getByRole('button', { name: 'Send a test webhook' }));
    await page.keyboard.press('Enter');
    await showsTypes(page, 'webhook.test');
    await page.getByText(`of company default to ${receiver.url}`).waitFor();
    await page.keyboard.press('Home');
    await page.locator('h1').click();
    await tabTo(page, page.getByRole('button', { name: /webhook\.test/ }));
    await page.keyboard.press('Space');
    await page.getByLabel('Request body', { exact: true }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Redeliver' }));
    await page.keyboard.press('Enter');
    await showsTypes(page, 'webhook.test', 'webhook.test');
    // The log shows an attempt before it is sent.
    await eventually(() => expect(receiver.received).toHaveLength(2));
  });
});
