import type { Page } from 'playwright-core';
import type { DemoEnvironment } from '../demo-environment.js';
import type { ScreenshotBrowser, View } from './screenshot-browser.js';

const DESKTOP: View = { device: 'desktop', scheme: 'light' };
const PHONE: View = { device: 'phone', scheme: 'light' };
/**
 * Time limit for the charts of the console, in milliseconds. The charts appear after the first complete minute, about
 * two minutes after the shop has started.
 */
const CHART_TIMEOUT_MS = 150_000;
/** Height of the screenshot of the overview on a desktop, in pixels. At this height, the charts are visible. */
const OVERVIEW_HEIGHT = 1230;

/** Takes all screenshots of the documentation. */
export async function captureAll(
  browser: ScreenshotBrowser,
  environment: DemoEnvironment,
): Promise<void> {
  await captureShop(browser, environment);
  await captureEmulator(browser, environment);
  await captureConsole(browser, environment);
}

async function captureShop(
  browser: ScreenshotBrowser,
  { addresses, customer, emulator, pay }: DemoEnvironment,
): Promise<void> {
  const { shop } = addresses;
  await browser.capture('products', shop, DESKTOP, (page) => waitForText(page, 'Bread'));
  await browser.capture('products-phone', shop, PHONE, (page) => waitForText(page, 'Kericho tea'));
  const order = await customer.createOrder('tea-7k2m', 350);
  const url = `${shop}orders/${order.reference}`;
  await browser.capture('order-waiting-phone', url, PHONE, (page) =>
    waitForText(page, 'Waiting for confirmation'),
  );
  await browser.capture('order-paid', url, { ...DESKTOP, height: 460 }, async (page) => {
    await waitForText(page, 'Waiting for confirmation');
    await pay(order);
    await waitForText(page, 'Paid', '.order .status');
  });
  const unmatched = { amount: 40, externalReference: 'walk-in' };
  emulator.complete(emulator.createStkPush(unmatched).transactionId);
  await browser.capture('ledger', `${shop}ledger`, DESKTOP, (page) => waitForText(page, 'walk-in'));
}

async function captureEmulator(
  browser: ScreenshotBrowser,
  { addresses, customer, emulator }: DemoEnvironment,
): Promise<void> {
  const order = await customer.createOrder('coffee-9w4x', 420.5);
  await browser.capture('checkout', order.checkoutUrl!, DESKTOP, async (page) => {
    await page.getByLabel('Phone number').fill('+1 555 010 0123');
    await page.getByRole('button', { name: 'Send the code' }).click();
    await page.getByLabel('One-time code').waitFor();
  });
  const push = { amount: 65.1, externalReference: 'milk-3p8q', phoneNumber: '+15550100123' };
  const { transactionId } = emulator.createStkPush(push);
  const prompt = `${addresses.emulator}stk?transaction=${transactionId}`;
  await browser.capture('stk-prompt-phone', prompt, PHONE, async (page) => {
    await waitForText(page, 'milk-3p8q');
    await page.getByRole('main').scrollIntoViewIfNeeded();
  });
  const log = `${emulator.baseUrl}/emulator?tab=deliveries`;
  await browser.capture('delivery-log', log, DESKTOP, async (page) => {
    const deliveries = page.locator('#deliveries');
    await deliveries.getByRole('button', { name: 'delivered 200' }).first().click();
    await deliveries.getByText('x-webhook-signature').first().waitFor();
  });
}

async function captureConsole(
  browser: ScreenshotBrowser,
  environment: DemoEnvironment,
): Promise<void> {
  const { addresses, emulator } = environment;
  const { user, password } = addresses;
  const operator = { username: user, password };
  // The event arrives before the transaction is complete. Therefore the handler fails and is retried.
  const push = emulator.createStkPush({ amount: 180, externalReference: 'sugar-5c6d' });
  const data = { ...emulator.transaction(push.transactionId), status: 'complete' };
  const early = emulator.sendEvent({ eventType: 'transaction.completed', data: { ...data } });
  const event = `${addresses.console}#/events/default/${early.id}`;
  await browser.capture('console-event', event, { ...DESKTOP, operator }, async (page) => {
    const attempts = page.getByRole('article', { name: 'record-payment' }).locator('tbody tr');
    await attempts.nth(1).waitFor();
  });
  // The range of the charts is slightly longer than the traffic.
  const overview = `${addresses.console}#/?minutes=15`;
  for (const scheme of ['light', 'dark'] as const) {
    const name = scheme === 'light' ? 'console-overview' : 'console-overview-dark';
    const view = { device: 'desktop', scheme, operator, height: OVERVIEW_HEIGHT } as const;
    await browser.capture(name, overview, view, async (page) => {
      await page.locator('.uplot canvas').first().waitFor({ timeout: CHART_TIMEOUT_MS });
    });
  }
  await browser.capture('console-overview-phone', overview, { ...PHONE, operator }, async (page) =>
    page.locator('.uplot canvas').first().waitFor({ state: 'attached', timeout: CHART_TIMEOUT_MS }),
  );
}

async function waitForText(page: Page, text: string, within = 'main'): Promise<void> {
  await page.locator(within).getByText(text, { exact: true }).first().waitFor();
}
