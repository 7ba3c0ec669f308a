import { expect, it } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import type { Locator, Page } from 'playwright-core';
import { isFocused, widthOf } from '../../support/browser/page-appearance.js';
import {
  arrived,
  clickTwice,
  describeInBrowser,
  tabTo,
} from '../../support/browser/test-browser.js';
import { codeOnPhone, confirmAtCheckout } from '../../support/emulator/checkout-page.js';
import { press } from '../../support/emulator/delivery-log-page.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { eventually } from '../../support/time/waiting.js';

const payment = { amount: 1250, externalReference: 'order-77' };
const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started));

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

  it('the hosted checkout pays once after a double click, a reload, going back and sending again', async () => {
    const invoice = emulator.createCheckoutInvoice(payment);
    const page = await browser().page();
    await page.goto(invoice.checkoutUrl);
    await confirmAtCheckout(page);
    const second = await page.context().newPage();
    await second.goto(invoice.checkoutUrl);
    await clickTwice(page.getByRole('button', { name: 'Pay KES 1,250.00' }));
    await page.getByText('Paid', { exact: true }).waitFor();
    await press(second, 'Pay KES 1,250.00');
    await second.getByText('Paid', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('Paid', { exact: true }).waitFor();
    await page.goBack();
    await page.getByText('Paid', { exact: true }).waitFor();
    expect(await page.getByRole('button').count()).toBe(0);
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
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

  it('the STK push prompt shows a new prompt automatically, and does not send the PIN of a payment', async () => {
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

  it('the STK push prompt fails the transaction if the customer cancels the prompt', async () => {
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

  it('the STK push prompt filters prompts by company, phone number and transaction', async () => {
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

  it('the STK push prompt escapes markup, works with the keyboard only and fits a narrow screen', async () => {
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
