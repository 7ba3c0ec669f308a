import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { seriousViolationsEverywhere } from '../support/browser/accessibility.js';
import { weakTexts, widthOf } from '../support/browser/page-appearance.js';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { RunningShop, settingsFor } from '../support/shop/running-shop.js';
import { eventually } from '../support/time/waiting.js';

const PASSWORD = 'correct horse battery';
const AMOUNT = /^KES\s[\d,]+\.\d\d$/;
const TIME = /^\d{1,2} [A-Z][a-z]{2,3} \d{4}, \d\d:\d\d:\d\d \S+$/;

/** The pages, with an element that they show when their script has loaded the content. */
const PAGES = [
  ['/', '.product'],
  ['/ledger', '.ledger .unmatched'],
  ['/orders/waiting', '.waiting .amounts'],
  ['/orders/partial', '.partial .amounts'],
  ['/orders/paid', '.paid .amounts'],
  ['/orders/overpaid', '.overpaid .amounts'],
  ['/orders/nobody', 'h1'],
] as const;

describeInBrowser('the appearance of the shop', (browser) => {
  let emulator: PaymentsEmulator;
  let shop: RunningShop;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'appearance' });
    shop = await RunningShop.start({ ...settingsFor(emulator), SHOP_CONSOLE_PASSWORD: PASSWORD });
    emulator.setWebhook({ url: shop.webhookUrl });
    for (const reference of ['waiting', 'partial', 'paid', 'overpaid']) {
      await shop.createOrder(reference, 1234.5);
    }
    const payments = { partial: 4.5, paid: 1234.5, overpaid: 1_000_000, nobody: 3 };
    for (const [externalReference, amount] of Object.entries(payments)) {
      emulator.complete(emulator.createStkPush({ amount, externalReference }).transactionId);
      await shop.recorded(externalReference, [amount]);
    }
  });
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await emulator?.close();
  });

  async function open([path, content]: (typeof PAGES)[number], width: number): Promise<Page> {
    const viewport = { width, height: 900 };
    const page = await browser().page({ viewport, reducedMotion: 'reduce' });
    await page.goto(shop.url + path);
    await page.locator(content).first().waitFor();
    return page;
  }

  const texts = async (page: Page, selector: string) =>
    (await page.locator(selector).allInnerTexts()).map((text) => text.trim());

  it.each(PAGES)('axe-core finds no serious violation on shop page %s', async (path, content) => {
    const page = await open([path, content] as (typeof PAGES)[number], 1280);
    expect(await seriousViolationsEverywhere(page)).toEqual([]);
  });

  it('every page of the shop fits into a width of 390, 820 and 1280 pixels and is readable', async () => {
    for (const one of PAGES) {
      const page = await open(one, 390);
      for (const width of [390, 820, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        expect([one[0], await widthOf(page)]).toEqual([one[0], width]);
        expect([one[0], await weakTexts(page)]).toEqual([one[0], []]);
      }
      await page.close();
    }
  });

  it('every amount in the shop has two decimals and the currency: on the products, an order, its checkout and the ledger', async () => {
    for (const [page, selector, count] of [
      [await open(PAGES[0], 1280), '.price', 6],
      [await open(PAGES[3], 1280), '.amounts dd', 3],
      [await open(PAGES[1], 1280), 'td.number', 4],
    ] as const) {
      const amounts = await texts(page, selector);
      expect(amounts).toHaveLength(count);
      for (const amount of amounts) expect(amount).toMatch(AMOUNT);
    }
    const ledger = await open(PAGES[1], 390);
    expect(await texts(ledger, '.tiles dd')).toEqual([
      '4',
      'KES\u00a01,001,242.00',
      '1 KES\u00a03.00',
    ]);
    const order = await open(PAGES[2], 1280);
    const [checkout] = await Promise.all([
      order.context().waitForEvent('page'),
      order.getByRole('link', { name: /^Pay KES 1,234\.50/ }).click(),
    ]);
    await checkout.getByText('KES 1,234.50').first().waitFor();
  });

  it('the console of the shop shows amounts with the currency', async () => {
    const httpCredentials = { username: 'operator', password: PASSWORD };
    const page = await browser().page({ httpCredentials });
    await page.goto(`${shop.url}/console#/events?search=overpaid`);
    const row = page.getByRole('row').filter({ hasText: 'overpaid' });
    await row.getByText('KES\u00a01,000,000.00').waitFor();
  });

  it('timestamps in the ledger and in the message about a lost connection have the same format, and their age as a tooltip', async () => {
    const page = await open(PAGES[1], 1280);
    await page.route('**/api/ledger/page', (route) => route.abort());
    await page.reload();
    await page.getByText(/^The shop has not been reachable since/).waitFor();
    const lost = await texts(page, '.connection time');
    await page.unroute('**/api/ledger/page');
    await page.locator('.ledger time').first().waitFor();
    const times = [...lost, ...(await texts(page, '.ledger time'))];
    expect(times).toHaveLength(5);
    for (const time of times) expect(time).toMatch(TIME);
    const time = page.locator('.ledger time').first();
    await time.hover();
    expect(await time.getAttribute('title')).toMatch(/^(now|\d+ (seconds?|minutes?) ago)$/);
  });

  it('the page of an order has two columns on a desktop and one column on a phone', async () => {
    const page = await open(PAGES[2], 1280);
    const places = async () => {
      const [order, summary] = [page.locator('.order'), page.locator('.summary')];
      return [(await order.boundingBox())!, (await summary.boundingBox())!] as const;
    };
    const [order, summary] = await places();
    expect(summary.y).toBe(order.y);
    expect(summary.x).toBeGreaterThan(order.x + order.width);
    expect(summary.x + summary.width).toBeGreaterThan(1200);
    await page.setViewportSize({ width: 390, height: 900 });
    await eventually(async () => {
      const [first, second] = await places();
      expect(second.x).toBe(first.x);
      expect(second.y).toBeGreaterThan(first.y + first.height);
    });
  });
});
