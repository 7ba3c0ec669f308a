import { expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.js';
import { eventually } from '../support/eventually.js';
import type { Receiver } from './emulator.receiver.js';
import { stageEmulator } from './emulator.stage.js';

jest.setTimeout(60_000);

const payment = { amount: 1250, externalReference: 'order-77' };
const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
let receiver: Receiver;
let emulator: PaymentsEmulator;

stageEmulator((stage) => ({ receiver, emulator } = stage));

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).click();
const log = (page: Page) => page.getByRole('region', { name: 'Deliveries', exact: true });
const lines = (page: Page) => log(page).getByRole('listitem');

async function openLog(page: Page, query = ''): Promise<void> {
  await page.goto(`${emulator.baseUrl}/emulator${query}`);
  await log(page).waitFor();
}

async function shows(page: Page, ...types: string[]): Promise<void> {
  await eventually(async () => {
    expect(await page.locator('.line .what').allInnerTexts()).toEqual(types);
  });
}

describeInBrowser('the delivery log', (browser) => {
  it('says what to do while it is empty, and shows a delivery by itself', async () => {
    const page = await browser().page();
    await openLog(page);
    await page.getByText('Nothing has been delivered yet.').waitFor();
    await page.getByText('Press “Send a test webhook”').waitFor();
    emulator.sendEvent({ eventType: 'x.y' });
    await shows(page, 'x.y');
    expect(await page.getByText('Nothing has been delivered yet.').count()).toBe(0);
  });

  it('shows what was sent and answered: URL, headers, signature, body, status, time taken', async () => {
    receiver.answer = (_, response) => response.writeHead(202, { 'x-shop': 'ours' }).end('thanks');
    const { transactionId } = emulator.createStkPush(payment);
    emulator.complete(transactionId);
    await emulator.idle();
    const [delivery] = emulator.deliveries();
    const page = await browser().page();
    await openLog(page);
    await press(page, /transaction\.completed/);
    await page.getByText(`POST ${receiver.url}`).waitFor();
    const sent = page.getByLabel('Headers sent');
    const signature = String(receiver.first.headers['x-webhook-signature']);
    expect(await sent.innerText()).toContain(signature);
    expect(await sent.innerText()).toContain('PaymentsEmulator-Webhook/1.0');
    const body = page.getByLabel('Body sent', { exact: true });
    expect(await body.innerText()).toBe(String(receiver.first.body));
    await page.getByLabel('Set out to be read: Body sent').check();
    expect(await body.innerText()).toBe(
      JSON.stringify(JSON.parse(String(receiver.first.body)), null, 2),
    );
    expect(await page.getByLabel('Headers answered').innerText()).toContain('x-shop');
    expect(await page.getByLabel('Body answered', { exact: true }).innerText()).toBe('thanks');
    const line = lines(page).getByRole('button', { name: /transaction\.completed/ });
    expect(await line.innerText()).toContain('delivered 202');
    expect(await line.innerText()).toContain(`${delivery?.durationMs} ms`);
    expect(await line.locator('time').getAttribute('datetime')).toBe(delivery?.sentAt);
  });

  it('sets a body out to be read without reading its values: digits, escapes and double keys stay', async () => {
    const answer =
      '{"n":12345678901234567890.10,"n":1e2,"t":"\\u0041, {b}: \\"c\\"","none":[ ],"of":{}}';
    receiver.answer = (_, response) => response.writeHead(200).end(answer);
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page);
    await press(page, /x\.y/);
    await page.getByLabel('Set out to be read: Body answered').check();
    expect(await page.getByLabel('Body answered', { exact: true }).innerText()).toBe(`{
  "n": 12345678901234567890.10,
  "n": 1e2,
  "t": "\\u0041, {b}: \\"c\\"",
  "none": [],
  "of": {}
}`);
  });

  it('redelivers, and shows the new attempt', async () => {
    receiver.answerWith(500, 200);
    emulator.sendEvent({ eventType: 'x.y' });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page);
    await press(page, /failed 500/);
    await page.getByText('status: answered 500; only a 2xx acknowledges').waitFor();
    await press(page, 'Redeliver');
    await page.getByRole('button', { name: /delivered 200 .*redelivery, attempt 2/ }).waitFor();
    expect(receiver.received).toHaveLength(2);
    expect(receiver.received[1]?.body).toEqual(receiver.first.body);
  });

  it('sends a test webhook, and creates and ends a transaction of each kind', async () => {
    const page = await browser().page();
    await openLog(page);
    await press(page, 'Send a test webhook');
    await shows(page, 'webhook.test');
    for (const kind of ['checkout-invoice', 'stk-push', 'payout']) {
      await page.getByLabel('Kind').selectOption(kind);
      await page.getByLabel('Reference').fill(`by-${kind}`);
      await press(page, 'Create a transaction');
      await page
        .getByRole('listitem')
        .filter({ hasText: `by-${kind}` })
        .waitFor();
    }
    const entry = (kind: string) => page.getByRole('listitem').filter({ hasText: `by-${kind}` });
    await entry('payout').getByRole('button', { name: 'Complete' }).click();
    await shows(page, 'transaction.completed', 'webhook.test');
    await entry('stk-push').getByRole('button', { name: 'Decline' }).click();
    await entry('stk-push').getByText('failed', { exact: true }).waitFor();
    expect(emulator.transactions().map(({ kind, status }) => [kind, status])).toEqual([
      ['checkout-invoice', 'pending'],
      ['stk-push', 'failed'],
      ['payout', 'complete'],
    ]);
    await page.getByLabel('Amount').fill('-5');
    await press(page, 'Create a transaction');
    await page.getByRole('alert').getByText('amount must be a number above 0').waitFor();
    await entry('checkout-invoice').getByRole('link', { name: 'Checkout page' }).click();
    await page.getByLabel('Phone number').waitFor();
    await page.getByRole('link', { name: 'Deliveries about this payment' }).click();
    await page.getByText('No delivery matches.').waitFor();
  });

  it('leaves alone what is being typed, whatever comes in meanwhile', async () => {
    const page = await browser().page();
    await openLog(page);
    await page.getByLabel('Reference').fill('half-typed');
    await page.getByLabel('Amount').fill('77');
    emulator.setFaults({ api: { truncate: {} } });
    emulator.sendEvent({ eventType: 'x.y' });
    await shows(page, 'x.y');
    await page.getByText('1 fault on for default').waitFor();
    expect(await page.getByLabel('Reference').inputValue()).toBe('half-typed');
    expect(await page.getByLabel('Amount').inputValue()).toBe('77');
  });

  it('is narrowed down by company, state and what it is about, and keeps that in its address', async () => {
    emulator.createCompany({ companyId: 'other' });
    emulator.sendEvent({ eventType: 'a.one' });
    await emulator.idle();
    emulator.sendEvent({ eventType: 'b.two', companyId: 'other' });
    await emulator.idle();
    const paid = emulator.createPayout(payment);
    emulator.complete(paid.transactionId);
    await emulator.idle();
    const page = await browser().page();
    await openLog(page);
    await shows(page, 'transaction.completed', 'b.two', 'a.one');
    await log(page).getByLabel('Company').selectOption('other');
    await shows(page, 'b.two');
    await log(page).getByLabel('Company').selectOption('');
    await log(page).getByLabel('State').selectOption('delivered');
    await shows(page, 'transaction.completed', 'a.one');
    await log(page).getByLabel('Transaction, event or type').fill('A.ON');
    await shows(page, 'a.one');
    await page.reload();
    await shows(page, 'a.one');
    await log(page).getByLabel('Transaction, event or type').fill(paid.transactionId);
    await shows(page, 'transaction.completed');
  });

  it('is shown a page at a time', async () => {
    for (let number = 1; number <= 60; number++) emulator.sendEvent({ eventType: `n.${number}` });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page);
    await eventually(async () => expect(await lines(page).count()).toBe(50));
    await press(page, 'Older');
    await shows(page, ...Array.from({ length: 10 }, (_, index) => `n.${10 - index}`));
    await press(page, 'Newest');
    await eventually(async () => expect(await lines(page).count()).toBe(50));
  });

  it('shows markup in a body, a header or an answer as text, and runs nothing', async () => {
    receiver.answer = (_, response) => response.writeHead(200, { 'x-shop': MARKUP }).end(MARKUP);
    emulator.sendEvent({ eventType: `x.${MARKUP.replaceAll(' ', '')}`, data: { MARKUP } });
    emulator.createStkPush({ ...payment, externalReference: MARKUP });
    await emulator.idle();
    const page = await browser().page();
    await openLog(page);
    await page.locator('.line').first().click();
    await page.getByLabel('Set out to be read: Body sent').check();
    expect(await page.getByLabel('Body sent', { exact: true }).innerText()).toContain('<script>');
    expect(await page.getByLabel('Body answered', { exact: true }).innerText()).toBe(MARKUP);
    expect(await page.getByLabel('Headers answered').innerText()).toContain(MARKUP);
    await page.getByText(MARKUP, { exact: true }).first().waitFor();
    expect(await page.locator('img, #page script').count()).toBe(0);
    expect(await page.evaluate('window.ran')).toBeUndefined();
  });

  it('shows no secret before it is asked to', async () => {
    const { clientSecret, webhookSecret } = emulator.company;
    const page = await browser().page();
    const received: string[] = [];
    page.on('response', (response) => {
      void response.text().then(
        (text) => received.push(text),
        () => undefined,
      );
    });
    await openLog(page);
    await press(page, 'Send a test webhook');
    await shows(page, 'webhook.test');
    expect(received.length).toBeGreaterThan(0);
    expect(received.join()).not.toContain(webhookSecret);
    expect(received.join()).not.toContain(clientSecret);
    await press(page, 'Show the credentials');
    await page.getByText(webhookSecret).waitFor();
    await page.getByText(clientSecret, { exact: true }).waitFor();
    await press(page, 'Hide them');
    await page.getByText(webhookSecret).waitFor({ state: 'detached' });
  });

  it('says so while the emulator is gone, and goes on by itself when it is back', async () => {
    const first = await PaymentsEmulator.start();
    const port = Number(new URL(first.baseUrl).port);
    first.sendEvent({ eventType: 'before' });
    const page = await browser().page();
    await page.goto(`${first.baseUrl}/emulator`);
    await shows(page, 'before');
    await first.close();
    await page.getByText(/not reachable since \d\d:\d\d:\d\d; trying again/).waitFor();
    await shows(page, 'before');
    await press(page, 'Send a test webhook');
    await page.getByRole('alert').getByText('nothing is known of the outcome').waitFor();
    await using second = await PaymentsEmulator.start({ port });
    second.sendEvent({ eventType: 'after' });
    await shows(page, 'after');
    await page.getByText('trying again').waitFor({ state: 'detached' });
  });

  it('works with the keyboard alone', async () => {
    const page = await browser().page();
    await openLog(page);
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
    await shows(page, 'webhook.test');
    await page.keyboard.press('Home');
    await page.locator('h1').click();
    await tabTo(/webhook\.test/);
    await page.keyboard.press('Space');
    await page.getByLabel('Body sent', { exact: true }).waitFor();
    await tabTo(/^Redeliver$/);
    await page.keyboard.press('Enter');
    await shows(page, 'webhook.test', 'webhook.test');
    // The log shows an attempt before it is sent.
    await eventually(() => expect(receiver.received).toHaveLength(2));
  });

  it.each(['light', 'dark'] as const)('fits the width of a phone, %s', async (colorScheme) => {
    emulator.setFaults({ delivery: { duplicate: {}, tamperBody: {} }, api: { oversize: {} } });
    emulator.createCheckoutInvoice({ amount: 1e12, externalReference: 'reference-'.repeat(25) });
    emulator.sendEvent({ eventType: 'type.'.repeat(25), data: { long: 'x'.repeat(500) } });
    await emulator.idle();
    const page = await browser().page({ viewport: { width: 390, height: 800 }, colorScheme });
    await openLog(page);
    await page.locator('.line').first().click();
    await page.getByLabel('Body sent', { exact: true }).waitFor();
    await press(page, 'Show the credentials');
    await page.getByText(emulator.company.webhookSecret).waitFor();
    for (const numbers of await page.locator('summary').all()) await numbers.click();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  });
});
