import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { arrived, clickTwice, describeInBrowser, tabTo } from '../support/browser.js';
import { eventually } from '../support/eventually.js';
import { weakTexts, widthOf } from '../support/page.looks.js';
import { payAtCheckout } from '../support/shop.checkout.js';
import { settingsFor, Shop } from '../support/shop.client.js';
import { ScriptedPaymentsService } from '../support/shop.service.js';

jest.setTimeout(90_000);

const PASSWORD = 'correct horse battery';
const MARKUP = `<img src=x onerror="document.title='ran'">`;

const standing = (page: Page, text: string) =>
  page.locator('.standing').getByText(text, { exact: true }).waitFor();

/** So that a reload would be noticed. */
const mark = (page: Page) => page.evaluate('void (globalThis.untouched = true)');
const isUntouched = (page: Page) => page.evaluate('globalThis.untouched === true');

describeInBrowser('the shop in a browser', (browser) => {
  describe.each(['express', 'fastify'])('on %s', (adapter) => {
    let emulator: PaymentsEmulator;
    let shop: Shop;

    beforeAll(async () => {
      emulator = await PaymentsEmulator.start({ seed: `browser-${adapter}` });
      shop = await Shop.start({
        ...settingsFor(emulator),
        SHOP_ADAPTER: adapter,
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

    it('sells: bought, paid at the checkout, paid on the order page without a reload, and seen in all three', async () => {
      const page = await browser().page({
        httpCredentials: { username: 'operator', password: PASSWORD },
      });
      await page.goto(shop.url);
      await page.getByRole('button', { name: 'Buy Kericho tea' }).click();
      await arrived(page, /\/o\/tea-/);
      await standing(page, 'Waiting for your payment');
      await mark(page);
      const reference = new URL(page.url()).pathname.slice(3);

      const [checkout] = await Promise.all([
        page.context().waitForEvent('page'),
        page.getByRole('link', { name: /^Pay 350\.00/ }).click(),
      ]);
      await payAtCheckout(checkout);
      await standing(page, 'Paid');
      expect(await isUntouched(page)).toBe(true);
      // The title follows the content after the next frame.
      await eventually(async () => expect(await page.title()).toBe(`Paid: order ${reference}`));
      expect(await page.getByRole('link', { name: /^Pay/ }).count()).toBe(0);

      await page.goto(`${shop.url}/books`);
      const row = page.getByRole('row').filter({ hasText: reference });
      expect(await row.textContent()).toContain('350.00');
      await row.getByRole('link', { name: reference }).click();
      await standing(page, 'Paid');

      const paid = emulator.transactions().find((one) => one.externalReference === reference)!;
      const [delivery] = emulator.deliveries({ transactionId: paid.transactionId });
      await page.goto(`${emulator.baseUrl}/emulator/?search=${paid.transactionId}`);
      await page.getByRole('button', { name: /delivered 200.*transaction\.completed/ }).click();
      await page.getByText(delivery!.eventId, { exact: true }).waitFor();
      await page.goto(`${shop.url}/console#/events/default/${delivery!.eventId}`);
      await page.locator('.payload').getByText(reference).waitFor();
      await page.getByRole('article', { name: 'bookkeeper' }).getByText('done').first().waitFor();
    });

    it('orders once if the button is clicked twice, and again after going back to the shelf', async () => {
      const page = await browser().page();
      const orders = new Set<string>();
      page.on('response', (answer) => {
        if (answer.url().endsWith('/buy')) orders.add(answer.headers()['location']!);
      });
      await page.goto(shop.url);
      await clickTwice(page.getByRole('button', { name: 'Buy Bread' }));
      await arrived(page, /\/o\/bread-/);
      await standing(page, 'Waiting for your payment');
      expect(orders.size).toBe(1);
      await page.goBack();
      await page.getByRole('button', { name: 'Buy Bread' }).click();
      await arrived(page, /\/o\/bread-/);
      await eventually(() => expect(orders.size).toBe(2));
    });

    it('tells every tab of an order, in part, in full, and when it is too much', async () => {
      await shop.place('shared', 30);
      const [first, second] = [await browser().page(), await browser().page()];
      for (const page of [first, second]) {
        await page.goto(`${shop.url}/o/shared`);
        await standing(page, 'Waiting for your payment');
        await mark(page);
      }
      for (const [amount, title, line] of [
        [10, 'Paid in part', 'To be paid20.00'],
        [20, 'Paid', 'Paid30.00'],
        [2.5, 'Paid, and more than that', 'Too much2.50'],
      ] as const) {
        pay('shared', amount);
        for (const page of [first, second]) {
          await standing(page, title);
          expect(await page.locator('.sums').innerText()).toContain(line.replace(/(\d)/, '\n$1'));
          expect(await isUntouched(page)).toBe(true);
        }
      }
    });

    it('shows the ledger as it grows, markup as text, and older entries page by page', async () => {
      const page = await browser().page();
      await page.goto(`${shop.url}/books`);
      await page.getByText('Live: this page changes by itself.').waitFor();
      await mark(page);
      for (let at = 0; at < 21; at += 1) pay(at === 20 ? MARKUP : `walk-in-${at}`, 5);
      await page.getByText(MARKUP, { exact: true }).waitFor();
      await eventually(async () => expect((await shop.ledger(MARKUP)).length).toBe(1));
      expect(await page.getByText('matches no order').count()).toBeGreaterThan(0);
      expect(await isUntouched(page)).toBe(true);
      expect(await page.title()).toBe('Ledger');

      await page.getByRole('link', { name: 'Older' }).click();
      await page.getByText('Older bookings, newest first').waitFor();
      await page.goBack();
      await page.getByText('Newest first', { exact: true }).waitFor();
    });

    it('asks for the payment page again where the service gave none', async () => {
      emulator.setFaults({ api: { error: { next: 1 } } });
      await shop.place('unlucky', 9);
      const page = await browser().page();
      await page.goto(`${shop.url}/o/unlucky`);
      await page.getByRole('button', { name: 'Ask for it again' }).click();
      await page.getByRole('link', { name: /^Pay 9\.00/ }).waitFor();
    });

    it.each(['light', 'dark'] as const)(
      'can be read, and used with the keyboard alone, at the width of a phone, %s',
      async (colorScheme) => {
        const page = await browser().page({ colorScheme, viewport: { width: 390, height: 800 } });
        const fits = async () => {
          expect(await widthOf(page)).toBeLessThanOrEqual(390);
          expect(await weakTexts(page)).toEqual([]);
        };
        await page.goto(shop.url);
        await fits();
        await tabTo(page, page.getByRole('button', { name: 'Buy Fresh milk' }));
        await page.keyboard.press('Enter');
        await arrived(page, /\/o\/milk-/);
        await standing(page, 'Waiting for your payment');
        await fits();
        const reference = new URL(page.url()).pathname.slice(3);
        pay(reference, 65.1);
        await standing(page, 'Paid');
        // A sign that has just appeared is still moving.
        await eventually(fits);
        await page.goto(`${shop.url}/books`);
        await page.getByRole('link', { name: reference }).waitFor();
        await eventually(fits);
      },
    );
  });

  it('says when the shop is gone, and recovers: killed, started again, and paid in between', async () => {
    const SHOP_DATA = mkdtempSync(join(tmpdir(), 'shop-browser-'));
    const redeliver = [...Array<number>(10).fill(500), ...Array<number>(10).fill(5000)];
    await using emulator = await PaymentsEmulator.start({ redeliver });
    const settings = { ...settingsFor(emulator), SHOP_DATA };
    const first = await Shop.start(settings);
    emulator.setWebhook({ url: first.webhookUrl });
    const order = await first.place('patient', 12);
    const page = await browser().page();
    await page.goto(`${first.url}/o/patient`);
    await standing(page, 'Waiting for your payment');
    await mark(page);
    await first.process.kill('SIGKILL');
    await page.getByText(/^The shop is not reachable since .*Trying again/).waitFor();
    emulator.complete(order.checkoutUrl!.split('/').at(-1)!);
    await using again = await Shop.start({ ...settings, PORT: new URL(first.url).port });
    await again.booked('patient', [12]);
    await eventually(() => standing(page, 'Paid'));
    await page.getByText('Live: this page changes by itself.').waitFor();
    expect(await isUntouched(page)).toBe(true);
    await again.process.kill('SIGTERM');
    rmSync(SHOP_DATA, { recursive: true });
  });

  it('comes back by itself where its events are refused for a while', async () => {
    await using service = await ScriptedPaymentsService.start();
    await using shop = await Shop.start(service.settings);
    await shop.place('refused', 5);
    const page = await browser().page();
    await page.route('**/events', (route) => route.fulfill({ status: 503 }));
    await page.goto(`${shop.url}/o/refused`);
    await page.getByText(/^The shop is not reachable since/).waitFor();
    await page.unroute('**/events');
    await standing(page, 'Waiting for your payment');
    await page.getByText('Live: this page changes by itself.').waitFor();
  });

  it('leads nowhere but to the web: a checkout address that is a script is no link', async () => {
    await using service = await ScriptedPaymentsService.start();
    service.checkout = async () => ({ checkoutUrl: 'javascript:document.title="ran"' });
    await using shop = await Shop.start(service.settings);
    expect((await shop.place('evil', 5)).checkoutUrl).toMatch(/^javascript:/);
    const page = await browser().page();
    await page.goto(`${shop.url}/o/evil`);
    await page.getByRole('button', { name: 'Ask for it again' }).waitFor();
    expect(await page.locator('main a').count()).toBe(0);
  });
});
