import { expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Locator, Page } from 'playwright-core';
import { isFocused, widthOf } from '../../support/browser/page-appearance.js';
import { arrived, describeInBrowser, tabTo } from '../../support/browser/test-browser.js';
import { codeOnPhone, confirmAtCheckout } from '../../support/emulator/checkout-page.js';
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
const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
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

  it('the delivery log redelivers an event, and shows the new attempt', async () => {
    receiver.respondWith(500, 200);
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page, emulator);
    await press(page, /failed 500/);
    await page
      .getByText(
        'status: the receiver responded with 500; only a 2xx response acknowledges the delivery',
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

  it('the delivery log loads no secret until the user clicks the button that shows the credentials', async () => {
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

const status = (transactionId: string) => emulator.transaction(transactionId).status;

/** The browser sets `autofocus` in a frame after the page has loaded. */
const focused = (field: Locator) =>
  eventually(async () => expect(await isFocused(field)).toBe(true));

describeInBrowser('the hosted checkout in a browser', (browser) => {
  it('the hosted checkout completes the transaction, delivers the webhook, and links back to the merchant', async () => {
    const returnUrl = `${new URL(receiver.url).origin}/orders/77`;
    const invoice = emulator.createCheckoutInvoice({ ...payment, returnUrl });
    const page = await browser().page();
    await page.goto(invoice.checkoutUrl);
    await confirmAtCheckout(page);
    await press(page, 'Pay KES 1,250.00');
    await page.getByText('Paid', { exact: true }).waitFor();
    expect(status(invoice.transactionId)).toBe('complete');
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.data['transactionId'])).toEqual([
      invoice.transactionId,
    ]);
    const { host } = new URL(returnUrl);
    await page.getByRole('link', { name: `Back to the merchant (${host})` }).click();
    await arrived(page, /\/orders\/77$/);
  });

  it('the hosted checkout works without JavaScript, with the keyboard only, at the width of a phone', async () => {
    const long = 'reference-'.repeat(25);
    const invoice = emulator.createCheckoutInvoice({ ...payment, externalReference: long });
    const page = await browser().page({
      javaScriptEnabled: false,
      viewport: { width: 390, height: 800 },
    });
    await page.goto(invoice.checkoutUrl);
    await focused(page.getByLabel('Phone number'));
    await page.keyboard.type('+15550100123');
    await page.keyboard.press('Enter');
    await focused(page.getByLabel('One-time code'));
    await page.keyboard.type(await codeOnPhone(page));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Pay KES 1,250.00' }), 1);
    await page.keyboard.press('Enter');
    await page.getByText('Paid', { exact: true }).waitFor();
    expect(status(invoice.transactionId)).toBe('complete');
  });
});

describeInBrowser('the STK push prompt', (browser) => {
  const prompt = (page: Page, title: string) =>
    page.getByRole('article').filter({ has: page.getByRole('heading', { name: title }) });

  it('the page of STK push prompts shows a new prompt automatically, and does not send the PIN of a payment', async () => {
    const page = await browser().page();
    const sent: string[] = [];
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData()}`));
    await page.goto(`${emulator.baseUrl}/emulator/stk`);
    await page.getByText('No prompt is waiting.').waitFor();
    const push = emulator.createStkPush({ ...payment, phoneNumber: '+1 555 010 0123' });
    const shown = prompt(page, 'Pay KES 1,250.00 to default?');
    await shown.getByText('+15550100123').waitFor();
    await shown.getByLabel('Enter PIN').fill('98');
    await shown.getByRole('button', { name: 'Pay' }).click();
    await shown.getByRole('alert').getByText('any four digits').waitFor();
    expect(status(push.transactionId)).toBe('pending');
    await shown.getByLabel('Enter PIN').fill('9876');
    await shown.getByRole('button', { name: 'Pay' }).click();
    await page.getByText('complete', { exact: true }).waitFor();
    await shown.waitFor({ state: 'detached' });
    expect(status(push.transactionId)).toBe('complete');
    await emulator.idle();
    expect(receiver.first.event.data['transactionId']).toBe(push.transactionId);
    expect(sent.some((each) => each.includes(push.transactionId))).toBe(true);
    expect(sent.filter((each) => /\b9876\b/.test(each))).toEqual([]);
  });

  it('an STK push prompt that the customer cancels makes its transaction fail', async () => {
    const push = emulator.createStkPush(payment);
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator/stk`);
    await prompt(page, 'Pay KES 1,250.00 to default?')
      .getByRole('button', { name: 'Cancel' })
      .click();
    await page.getByText('No prompt is waiting.').waitFor();
    expect(status(push.transactionId)).toBe('failed');
    expect(receiver.received).toEqual([]);
  });

  it('the page of STK push prompts filters prompts by company, phone number and transaction', async () => {
    emulator.createCompany({ companyId: 'other' });
    const theirs = emulator.createStkPush({ ...payment, companyId: 'other', amount: 2 });
    emulator.createStkPush({ ...payment, amount: 3, phoneNumber: '+15550100123' });
    emulator.createStkPush({ ...payment, amount: 4, phoneNumber: '+15550100456' });
    const page = await browser().page();
    const amounts = async () =>
      (await page.getByRole('heading', { level: 2, name: /^Pay/ }).allInnerTexts()).map(
        (title) => /\d+/.exec(title)?.[0],
      );
    await page.goto(`${emulator.baseUrl}/emulator/stk`);
    await eventually(async () => expect(await amounts()).toEqual(['2', '3', '4']));
    await page.getByLabel('Company').selectOption('default');
    await eventually(async () => expect(await amounts()).toEqual(['3', '4']));
    await page.getByLabel('Phone number').fill('0100-456');
    await eventually(async () => expect(await amounts()).toEqual(['4']));
    await page.goto(`${emulator.baseUrl}/emulator/stk?transaction=${theirs.transactionId}`);
    await eventually(async () => expect(await amounts()).toEqual(['2']));
    await press(page, 'Show all prompts');
    await eventually(async () => expect(await amounts()).toEqual(['2', '3', '4']));
  });

  it('the page of STK push prompts escapes markup, works with the keyboard only and fits a narrow screen', async () => {
    const push = emulator.createStkPush({ amount: 7, externalReference: MARKUP.repeat(3) });
    const page = await browser().page({ viewport: { width: 390, height: 800 } });
    await page.goto(`${emulator.baseUrl}/emulator/stk`);
    await page.getByText(MARKUP.repeat(3), { exact: true }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.evaluate('window.ran')).toBeUndefined();
    expect(await widthOf(page)).toBeLessThanOrEqual(390);
    // The tab order: the link of this page, four tabs, company, phone number, PIN.
    await tabTo(page, page.getByLabel('Enter PIN'), 8);
    await page.keyboard.type('1234');
    await page.keyboard.press('Enter');
    await eventually(() => expect(status(push.transactionId)).toBe('complete'));
  });
});
