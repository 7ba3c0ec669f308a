import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { weakTexts, widthOf } from '../../support/browser/page-appearance.js';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { RunningShop, settingsFor } from '../../support/shop/running-shop.js';
import { eventually } from '../../support/time/waiting.js';

/** A poll every 400 ms at first. The last of the 100 polls is due after minutes, because a busy machine is slow. */
const OFTEN = Array.from({ length: 100 }, (_, index) =>
  Math.round(400 * (index + 1) * 1.02 ** index),
).join();

describeInBrowser('expected orders of the shop in a browser', (browser) => {
  let emulator: PaymentsEmulator;
  let shop: RunningShop;

  const start = (schedule: string) =>
    RunningShop.start({ ...settingsFor(emulator), SHOP_POLL_SCHEDULE_MS: schedule });

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'browser-expected' });
    emulator.setFaults({ delivery: { off: true } });
    shop = await start(OFTEN);
  });
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await emulator?.close();
  });

  async function open(of: RunningShop, reference: string) {
    await of.createOrder(reference, 1250);
    const page = await browser().page();
    await page.goto(`${of.url}/orders/${reference}`);
    return page;
  }

  /**
   * Waits for the status, which must appear without a reload, and checks that the page fits and is readable on a desktop
   * in the light color scheme and on a phone in the dark color scheme.
   */
  async function shows(page: Page, status: string, text: RegExp): Promise<void> {
    await page.locator('.order .status').getByText(status, { exact: true }).waitFor();
    await page.getByText(text).waitFor();
    for (const [width, colorScheme] of [
      [1280, 'light'],
      [390, 'dark'],
    ] as const) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      await eventually(async () => {
        expect(await widthOf(page)).toBeLessThanOrEqual(width);
        expect(await weakTexts(page)).toEqual([]);
      });
    }
  }

  const transactionOf = (externalReference: string): string =>
    emulator.transactions({ externalReference })[0]!.transactionId;

  it('EX-13 the order page shows that the shop waits for confirmation, and later that the shop found the payment by asking the service', async () => {
    const page = await open(shop, 'asked');
    await shows(page, 'Waiting for confirmation', /Do not pay twice/);
    emulator.complete(transactionOf('asked'));
    await shows(page, 'Paid (found by asking the service)', /we asked it and found your payment/);
    await page.goto(`${shop.url}/ledger`);
    const row = page.getByRole('row').filter({ hasText: 'asked' });
    await row.getByText('found by asking the service').waitFor();
  });

  it('EX-13 the order page shows a declined payment', async () => {
    const page = await open(shop, 'declined');
    await shows(page, 'Waiting for confirmation', /Do not pay twice/);
    emulator.fail(transactionOf('declined'));
    await shows(page, 'Declined', /you have not paid/);
    expect(await page.getByRole('link', { name: /^Pay/ }).count()).toBe(0);
  });

  it('EX-13 the order page shows that a payment is overdue, and that the order is paid if the event of the payment arrives later', async () => {
    await using hasty = await start('400');
    const page = await open(hasty, 'overdue');
    await shows(page, 'Overdue', /This does not mean that it failed/);
    emulator.setFaults({});
    emulator.setWebhook({ url: hasty.webhookUrl });
    emulator.complete(transactionOf('overdue'));
    await shows(page, 'Paid', /We have received your payment/);
    emulator.setFaults({ delivery: { off: true } });
  });

  it('EX-13 the order page creates no second payment if the customer requests the payment page again after an unknown outcome', async () => {
    emulator.setFaults({ delivery: { off: true }, api: { reset: { next: 1, when: 'after' } } });
    const page = await open(shop, 'unheard');
    await shows(page, 'Waiting for confirmation', /never creates a second payment/);
    await page.getByRole('button', { name: 'Request the payment page again' }).click();
    await shows(page, 'Waiting for confirmation', /never creates a second payment/);
    expect(emulator.transactions({ externalReference: 'unheard' })).toHaveLength(1);
    emulator.complete(transactionOf('unheard'));
    await shows(page, 'Paid (found by asking the service)', /we asked it/);
  });
});
