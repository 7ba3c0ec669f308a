import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { arrived, clickTwice, describeInBrowser, tabTo } from '../support/browser/test-browser.js';
import { payAtCheckout } from '../support/emulator/checkout-page.js';
import { eventually } from '../support/time/waiting.js';
import { RunningShop, settingsFor } from '../support/shop/running-shop.js';
import { ScriptedPaymentsService } from '../support/shop/scripted-payments-service.js';

const PASSWORD = 'correct horse battery';
const MARKUP = `<img src=x onerror="document.title='ran'">`;

const showsStatus = (page: Page, text: string) =>
  page.locator('.order .status').getByText(text, { exact: true }).waitFor();

/** Marks the page, to detect a reload. */
const mark = (page: Page) => page.evaluate('void (globalThis.isMarked = true)');
const isMarked = (page: Page) => page.evaluate('globalThis.isMarked === true');

describeInBrowser('the shop in a browser', (browser) => {
  describe('on Fastify', () => {
    let emulator: PaymentsEmulator;
    let shop: RunningShop;

    beforeAll(async () => {
      emulator = await PaymentsEmulator.start({ seed: 'browser' });
      shop = await RunningShop.start({
        ...settingsFor(emulator),
        SHOP_ADAPTER: 'fastify',
        SHOP_CONSOLE_PASSWORD: PASSWORD,
      });
      emulator.setWebhook({ url: shop.webhookUrl });
    });
    afterAll(async () => {
      await shop?.[Symbol.asyncDispose]();
      await emulator?.close();
    });

    function pay(externalReference: string, amount: number): string {
      const { transactionId } = emulator.createStkPush({ amount, externalReference });
      emulator.complete(transactionId);
      return transactionId;
    }

    it('a payment appears without a reload on the order page, the ledger, the emulator and the console', async () => {
      const page = await browser().page({
        httpCredentials: { username: 'operator', password: PASSWORD },
      });
      await page.goto(shop.url);
      await page.getByRole('button', { name: 'Buy Kericho tea' }).click();
      await arrived(page, /\/orders\/tea-/);
      await showsStatus(page, 'Waiting for confirmation');
      await mark(page);
      const reference = new URL(page.url()).pathname.slice('/orders/'.length);

      const [checkout] = await Promise.all([
        page.context().waitForEvent('page'),
        page.getByRole('link', { name: /^Pay KES 350\.00/ }).click(),
      ]);
      await payAtCheckout(checkout);
      await showsStatus(page, 'Paid');
      expect(await isMarked(page)).toBe(true);
      // The title follows the content after the next frame.
      await eventually(async () => expect(await page.title()).toBe(`Paid: order ${reference}`));
      expect(await page.getByRole('link', { name: /^Pay/ }).count()).toBe(0);

      await page.goto(`${shop.url}/ledger`);
      const row = page.getByRole('row').filter({ hasText: reference });
      expect(await row.textContent()).toContain('KES\u00a0350.00');
      await row.getByRole('link', { name: reference }).click();
      await showsStatus(page, 'Paid');

      const paid = emulator.transactions().find((one) => one.externalReference === reference)!;
      const [delivery] = emulator.deliveries({ transactionId: paid.transactionId });
      await page.goto(`${emulator.baseUrl}/emulator?tab=deliveries&search=${paid.transactionId}`);
      await page.getByRole('button', { name: /delivered 200.*transaction\.completed/ }).click();
      await page.getByText(delivery!.eventId, { exact: true }).waitFor();
      await page.goto(`${shop.url}/console#/events/default/${delivery!.eventId}`);
      await page.locator('.payload').getByText(reference).waitFor();
      await page
        .getByRole('article', { name: 'record-payment' })
        .getByText('done')
        .first()
        .waitFor();
    });

    it('a customer can buy a product and open the payment page with the keyboard only', async () => {
      const page = await browser().page();
      await page.goto(shop.url);
      await tabTo(page, page.getByRole('button', { name: 'Buy Fresh milk' }));
      await page.keyboard.press('Enter');
      await arrived(page, /\/orders\/milk-/);
      await tabTo(page, page.getByRole('link', { name: /^Pay KES 65\.10/ }));
      const [checkout] = await Promise.all([
        page.context().waitForEvent('page'),
        page.keyboard.press('Enter'),
      ]);
      await checkout.getByLabel('Phone number').waitFor();
    });

    it('the shop creates one order for a double click, and another order after the customer goes back', async () => {
      const page = await browser().page();
      const orders = new Set<string>();
      page.on('response', (response) => {
        if (response.url().endsWith('/buy')) orders.add(response.headers()['location']!);
      });
      await page.goto(shop.url);
      await clickTwice(page.getByRole('button', { name: 'Buy Bread' }));
      await arrived(page, /\/orders\/bread-/);
      await showsStatus(page, 'Waiting for confirmation');
      expect(orders.size).toBe(1);
      await page.goBack();
      await page.getByRole('button', { name: 'Buy Bread' }).click();
      await arrived(page, /\/orders\/bread-/);
      await eventually(() => expect(orders.size).toBe(2));
    });

    it('the shop shows a partial payment, the full payment and an overpayment in every tab', async () => {
      await shop.createOrder('shared', 30);
      const [first, second] = [await browser().page(), await browser().page()];
      for (const page of [first, second]) {
        await page.goto(`${shop.url}/orders/shared`);
        await showsStatus(page, 'Waiting for confirmation');
        await mark(page);
      }
      for (const [amount, title, line] of [
        [10, 'Partly paid', 'Still to pay\nKES\u00a020.00'],
        [20, 'Paid', 'Paid\nKES\u00a030.00'],
        [2.5, 'Overpaid', 'Overpaid\nKES\u00a02.50'],
      ] as const) {
        pay('shared', amount);
        for (const page of [first, second]) {
          await showsStatus(page, title);
          expect(await page.locator('.amounts').innerText()).toContain(line);
          expect(await isMarked(page)).toBe(true);
        }
      }
    });

    it('the shop updates the ledger, escapes markup, and shows older entries page by page', async () => {
      const page = await browser().page();
      await page.goto(`${shop.url}/ledger`);
      await page.getByText('Live: this page updates itself.').waitFor();
      await mark(page);
      for (let at = 0; at < 21; at += 1) pay(at === 20 ? MARKUP : `walk-in-${at}`, 5);
      await page.getByText(MARKUP, { exact: true }).waitFor();
      await eventually(async () => expect((await shop.ledger(MARKUP)).length).toBe(1));
      expect(await page.getByText('no such order').count()).toBeGreaterThan(0);
      expect(await isMarked(page)).toBe(true);
      expect(await page.title()).toBe('Ledger');

      await page.getByRole('link', { name: 'Older' }).click();
      await page.getByText('Older payments, newest first').waitFor();
      await page.goBack();
      await page.getByText('Newest first', { exact: true }).waitFor();
    });

    it('the shop requests the payment page again if the service did not create one', async () => {
      emulator.setFaults({ api: { unauthorized: { next: 2 } } });
      await shop.createOrder('unlucky', 9);
      const page = await browser().page();
      await page.goto(`${shop.url}/orders/unlucky`);
      await page.getByRole('button', { name: 'Request the payment page again' }).click();
      await page.getByRole('link', { name: /^Pay KES 9\.00/ }).waitFor();
    });
  });

  it('a page of the shop shows that the shop is not reachable, and after the restart shows the payment that was completed during the outage', async () => {
    const SHOP_DATA = mkdtempSync(join(tmpdir(), 'shop-browser-'));
    const redeliver = [...Array<number>(10).fill(500), ...Array<number>(10).fill(5000)];
    await using emulator = await PaymentsEmulator.start({ redeliver });
    const settings = { ...settingsFor(emulator), SHOP_DATA };
    const first = await RunningShop.start(settings);
    emulator.setWebhook({ url: first.webhookUrl });
    const order = await first.createOrder('patient', 12);
    const page = await browser().page();
    await page.goto(`${first.url}/orders/patient`);
    await showsStatus(page, 'Waiting for confirmation');
    await mark(page);
    await first.process.kill('SIGKILL');
    await page
      .getByText(/^The shop has not been reachable since .*The page keeps\s+trying/)
      .waitFor();
    emulator.complete(order.checkoutUrl!.split('/').at(-1)!);
    await using again = await RunningShop.start({ ...settings, PORT: new URL(first.url).port });
    await again.recorded('patient', [12]);
    await eventually(() => showsStatus(page, 'Paid'));
    await page.getByText('Live: this page updates itself.').waitFor();
    expect(await isMarked(page)).toBe(true);
    await again.process.kill('SIGTERM');
    rmSync(SHOP_DATA, { recursive: true });
  });

  it('a page of the shop continues after the shop rejected its requests', async () => {
    await using service = await ScriptedPaymentsService.start();
    await using shop = await RunningShop.start(service.settings);
    await shop.createOrder('refused', 5);
    const page = await browser().page();
    await page.route('**/api/orders/*', (route) => route.fulfill({ status: 503 }));
    await page.goto(`${shop.url}/orders/refused`);
    await page.getByText(/^The shop has not been reachable since/).waitFor();
    await page.unroute('**/api/orders/*');
    await showsStatus(page, 'Waiting for confirmation');
    await page.getByText('Live: this page updates itself.').waitFor();
  });

  it('the shop shows no link if the checkout address is a script', async () => {
    await using service = await ScriptedPaymentsService.start();
    service.checkout = async () => ({ checkoutUrl: 'javascript:document.title="ran"' });
    await using shop = await RunningShop.start(service.settings);
    expect((await shop.createOrder('evil', 5)).checkoutUrl).toMatch(/^javascript:/);
    const page = await browser().page();
    await page.goto(`${shop.url}/orders/evil`);
    await page.getByRole('button', { name: 'Request the payment page again' }).waitFor();
    expect(await page.locator('main a').count()).toBe(0);
  });
});
