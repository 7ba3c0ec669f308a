import type { Page } from 'playwright-core';
import type { DemoEnvironment } from '../demo-environment.js';
import type { ScreenshotBrowser, View } from './screenshot-browser.js';

/** A page of the shop, the emulator or the console. */
interface PageToCapture {
  readonly name: string;
  readonly url: string;
  /** CSS selector of an element that the page shows when its content is complete. Default: `main`. */
  readonly content?: string;
  /** Whether the page needs the credentials of the operator. */
  readonly console?: boolean;
}

const DEVICES = ['desktop', 'tablet', 'phone'] as const;
const SCHEMES = ['light', 'dark'] as const;
/**
 * Time limit for the content of a page, in milliseconds. The charts of the console appear after the first complete
 * minute, about two minutes after the shop has started.
 */
const TIMEOUT_MS = 150_000;
const EARLY_EVENTS = 3;

/**
 * Takes a screenshot of every page, from top to bottom, on a desktop, a tablet and a phone, in the light and the dark
 * color scheme: `NAME-DEVICE-SCHEME.png`.
 */
export async function captureEveryPage(
  browser: ScreenshotBrowser,
  environment: DemoEnvironment,
): Promise<void> {
  const { user, password } = environment.addresses;
  const operator = { username: user, password };
  for (const { name, url, content = 'main', console } of await pagesOf(environment)) {
    for (const device of DEVICES) {
      for (const scheme of SCHEMES) {
        const view: View = { device, scheme, fullPage: true, ...(console && { operator }) };
        await browser.capture(`${name}-${device}-${scheme}`, url, view, (page) =>
          isComplete(page, content),
        );
      }
    }
  }
}

/** Creates payments in each state, and returns the pages that show them. */
async function pagesOf(environment: DemoEnvironment): Promise<PageToCapture[]> {
  const { addresses, customer, emulator, pay } = environment;
  const { shop, console } = addresses;
  const complete = (externalReference: string, amount: number): string => {
    const { transactionId } = emulator.createStkPush({ amount, externalReference });
    emulator.complete(transactionId);
    return transactionId;
  };
  const waiting = await customer.createOrder('tea-8n3v', 350);
  await pay(await customer.createOrder('coffee-2d7h', 420.5));
  await customer.createOrder('bread-6y9b', 120);
  complete('bread-6y9b', 50);
  await customer.createOrder('milk-4t5r', 65.1);
  complete('milk-4t5r', 70);
  const unmatched = complete('walk-in-2', 40);
  const prompt = emulator.createStkPush({ amount: 99.99, externalReference: 'mandazi-1x' });
  // The events arrive before their transactions are complete. Therefore the handler fails and is retried.
  for (let count = 0; count < EARLY_EVENTS; count += 1) {
    const push = emulator.createStkPush({ amount: 180, externalReference: `sugar-${count}k` });
    const data = { ...emulator.transaction(push.transactionId), status: 'complete' };
    emulator.sendEvent({ eventType: 'transaction.completed', data: { ...data } });
  }
  const { eventId } = (await environment.lastDelivery(unmatched))!;
  const order = (reference: string) => `${shop}orders/${reference}`;
  const ofEmulator = (tab: string) => `${emulator.baseUrl}/emulator?tab=${tab}`;
  const ofConsole = (name: string, path: string, content = 'main h1'): PageToCapture => ({
    name: `console-${name}`,
    url: `${console}#/${path}`,
    content,
    console: true,
  });
  return [
    { name: 'shop-products', url: shop, content: '.product' },
    { name: 'shop-order-waiting', url: order('tea-8n3v'), content: '.waiting .amounts' },
    { name: 'shop-order-paid', url: order('coffee-2d7h'), content: '.paid .amounts' },
    { name: 'shop-order-partly-paid', url: order('bread-6y9b'), content: '.partial .amounts' },
    { name: 'shop-order-overpaid', url: order('milk-4t5r'), content: '.overpaid .amounts' },
    { name: 'shop-order-unknown', url: order('nobody') },
    { name: 'shop-ledger', url: `${shop}ledger`, content: '.ledger .unmatched' },
    { name: 'emulator-payments', url: ofEmulator('payments') },
    { name: 'emulator-deliveries', url: ofEmulator('deliveries') },
    { name: 'emulator-faults', url: ofEmulator('faults') },
    { name: 'emulator-credentials', url: ofEmulator('credentials') },
    { name: 'emulator-checkout', url: waiting.checkoutUrl! },
    {
      name: 'emulator-stk-prompt',
      url: `${addresses.emulator}stk?transaction=${prompt.transactionId}`,
    },
    ofConsole('overview', '?minutes=15', '.uplot canvas'),
    ofConsole('events', 'events'),
    ofConsole('search', 'events?search=sugar'),
    ofConsole('event', `events/default/${eventId}`),
    ofConsole('failures', 'failures'),
    ofConsole('expectations', 'expectations'),
    ofConsole('audit', 'audit'),
    ofConsole('setup', 'setup'),
    ofConsole('unknown-address', 'nonsense'),
  ];
}

async function isComplete(page: Page, content: string): Promise<void> {
  await page.locator(content).first().waitFor({ state: 'attached', timeout: TIMEOUT_MS });
  await page
    .getByText(/^(Loading|Connecting)/)
    .first()
    .waitFor({ state: 'hidden' });
}
