import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { cutCells, weakTexts, widthOf } from '../../support/browser/page-appearance.js';
import { ConsoleApplication, confirm } from '../../support/console/console-browser.js';
import { expectationsOf, TransactionService } from '../../support/console/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';

/** An application with a booked payment, one that is not booked, and payments that were only requested. */
async function openShop() {
  const service = await TransactionService.start();
  const app = await ConsoleApplication.start(service.options);
  const expectations = expectationsOf(app);
  service.statuses.set('t-pending', 'pending');
  await expectations.expect({ reference: 'Order-Pending', transactionId: 't-pending' });
  await expectations.expect({ reference: 'Order-Lost' });
  const lost = expectations.request(
    { reference: 'Order-Lost' },
    async (api) => api.post('nowhere', { body: {} }),
    { attach: () => 't-never' },
  );
  await lost.catch(() => {});
  await expectations.askNow({ reference: 'Order-Pending' });
  const booked = { transactionId: 't-booked', externalReference: 'Order-Booked', amount: 350 };
  await app.receive({ id: 'evt_booked', data: booked });
  await app.send(webhookRequest({ id: 'evt_repeat', data: booked }));
  app.handlers.trouble = 'no ledger account for this customer';
  await app.receive(
    {
      id: 'evt_dead',
      data: { transactionId: 't-dead', externalReference: 'Order-Dead', amount: '1250.50' },
    },
    {
      id: 'evt_twin',
      data: { transactionId: 't-twin', externalReference: 'Order-Twin', amount: '1250.5' },
    },
  );
  app.handlers.trouble = null;
  await eventually(async () => {
    expect(await expectations.get('Order-Pending')).toMatchObject({ polls: 1 });
  });
  return {
    app,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

async function search(page: Page, text: string): Promise<void> {
  await page.getByLabel(/^Search/).fill(text);
  await page.keyboard.press('Enter');
}

const verdict = (page: Page) => page.locator('.verdict');

describeInBrowser('payments in the inbox console', (browser) => {
  describe('with payments that no test changes', () => {
    let shop: Awaited<ReturnType<typeof openShop>>;
    beforeAll(async () => {
      shop = await openShop();
    });
    afterAll(() => shop?.[Symbol.asyncDispose]());

    it.each([
      ['a reference in lower case', 'order-booked', 'Order-Booked', /^booked Paid and booked at /],
      ['the start of a reference', 'ORDER-B', 'Order-Booked', /^booked Paid and booked at /],
      ['an event id', 'evt_booked', 'Order-Booked', /^booked Paid and booked at /],
      [
        'a transaction id',
        't-pending',
        'Order-Pending',
        /^waiting Not paid yet: the service says pending\. The next poll is (now|due now|in \d)/,
      ],
      ['an amount in another notation', '350.00', 'Order-Booked', /^booked Paid and booked/],
      [
        'a payment that was only requested',
        'order-lost',
        'Order-Lost',
        /^unknown Requested; no answer\. It is unknown whether the payment exists\. /,
      ],
      [
        'a payment that is not booked',
        'order-dead',
        'Order-Dead',
        /^not booked Not booked: handler Orders\.markPaid failed with “Error: no ledger account for this customer”; it is a dead letter\./,
      ],
    ])(
      'OP-10 OP-11 from any page, the search for %s opens the payment, which begins with its state',
      async (_, text, reference, state) => {
        const page = await shop.app.open(browser(), 'failures');
        await page.getByRole('heading', { name: 'Failures' }).waitFor();
        await search(page, text);
        await verdict(page).waitFor();
        expect((await verdict(page).innerText()).replace(/\s+/g, ' ')).toMatch(state);
        expect(await page.locator('.facts').textContent()).toContain(reference);
        await page.goBack();
        await page.getByRole('heading', { name: 'Failures' }).waitFor();
      },
    );

    it('OP-10 a search that matches several payments lists the payments with their states, and a search without a match shows a message', async () => {
      const page = await shop.app.open(browser());
      await search(page, 'KES 1,250.50');
      await page.getByText('No payment matches.').waitFor();
      await page.getByText('A payment that was only requested is not found by its').waitFor();
      await search(page, '1,250.50');
      const rows = page.locator('.payments tbody tr');
      await rows.nth(1).waitFor();
      expect(await rows.first().innerText()).toMatch(/Order-Twin[^]*not booked[^]*1,250\.50/);
      await page.reload();
      await rows.nth(1).waitFor();
      expect(await page.getByLabel(/^Search/).inputValue()).toBe('1,250.50');
      await page.getByRole('link', { name: 'Order-Dead' }).click();
      await verdict(page).getByText('it is a dead letter').waitFor();
      await search(page, 'order-');
      await rows.nth(4).waitFor();
      await search(page, `%_\\'"<b>&🔑#?=\ud800`);
      await page.getByText('No payment matches.').waitFor();
    });

    it('OP-11 OP-12 the page of a payment shows what happened to the payment, and the line of code where its handler threw an error', async () => {
      const page = await shop.app.open(browser(), 'payment/default/t-dead');
      const lines = page.locator('.timeline li');
      await lines.nth(2).waitFor();
      const texts = async () =>
        (await lines.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
      const all = await texts();
      expect(all[0]).toMatch(/webhook Webhook request: transaction\.completed evt_dead/);
      expect(all.join('\n')).toMatch(
        /failed Attempt 1 of Orders\.markPaid took .*: no ledger account/,
      );
      expect(all.join('\n')).toMatch(/done Attempt 1 of Mailer\.receipt/);
      await page.getByRole('link', { name: 'Newest first' }).click();
      await page.getByRole('link', { name: 'Oldest first' }).waitFor();
      expect(await texts()).toEqual(all.toReversed());
      const frames = page.locator('.frames pre');
      expect(await frames.isVisible()).toBe(false);
      await page.locator('.frames summary').click();
      expect(await frames.innerText()).toMatch(/^at Handlers\.markPaid \(test\/support\/console\//);
      await page.locator('.timeline').getByRole('link', { name: 'transaction.completed' }).click();
      await page.getByRole('heading', { name: 'Payload' }).waitFor();
      await page.locator('.frames summary').waitFor();
      await page.getByRole('link', { name: 't-dead' }).click();
      await verdict(page).waitFor();

      await page.goto(`${shop.app.url}#/payment/default/t-booked`);
      await page.locator('.timeline').getByText('evt_repeat').waitFor();
      await page.goto(`${shop.app.url}#/payment/default/nothing`);
      await page.getByText('No such payment.').waitFor();
    });

    it('OP-11 search results and the page of a payment have readable contrast and fit a phone in both color schemes', async () => {
      const page = await shop.app.open(browser());
      for (const place of [
        'search?for=order',
        'payment/default/t-dead',
        'payment/default/Order-Lost',
      ]) {
        await page.goto(`${shop.app.url}#/${place}`);
        await page.locator('.verdict, .payments').first().waitFor();
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          for (const width of [390, 1440]) {
            await page.setViewportSize({ width, height: 900 });
            expect(await widthOf(page)).toBe(width);
            expect(await cutCells(page)).toEqual([]);
            expect([place, colorScheme, await weakTexts(page)]).toEqual([place, colorScheme, []]);
          }
        }
      }
    });
  });

  it('OP-11 on the page of a payment, an operator can redrive a delivery and start a poll', async () => {
    await using shop = await openShop();
    const page = await shop.app.open(browser(), 'payment/default/Order-Dead');
    await page.getByRole('button', { name: 'Redrive … Orders.markPaid' }).click();
    await confirm(page);
    await verdict(page).getByText('Paid and booked at').waitFor();
    expect(await page.getByRole('heading', { name: 'Deliveries that are not done' }).count()).toBe(
      0,
    );
    await page.goto(`${shop.app.url}#/payment/default/Order-Pending`);
    await page.getByRole('button', { name: 'Ask the service now …' }).click();
    await confirm(page);
    await page.locator('.timeline').getByText('Last poll, 1 before it').waitFor();
  });
});
