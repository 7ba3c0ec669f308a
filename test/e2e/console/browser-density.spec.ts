import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { ConsoleApplication } from '../../support/console/console-browser.js';
import { expectationsOf, TransactionService } from '../../support/console/expecting-application.js';

const LETTERS = Array.from('abcdefghijklmnop');

/** How many rows of the list are completely visible in the window. */
const visibleRows = (page: Page) =>
  page.evaluate(
    () =>
      [...document.querySelectorAll('.cards > tbody > tr')].filter(
        (row) => row.getBoundingClientRect().bottom <= innerHeight,
      ).length,
  );

describeInBrowser('the density of the inbox console', (browser) => {
  it('OP-31 a window of 1440 by 900 pixels shows at least 15 rows of each list, and dead deliveries first', async () => {
    await using service = await TransactionService.start();
    await using app = await ConsoleApplication.start(service.options);
    for (const letter of LETTERS) {
      app.handlers.trouble = `no such order: ${letter}`;
      const data = { transactionId: `t-${letter}`, amount: '1250.00', currency: 'KES' };
      await app.receive({ id: `evt_${letter}`, data: { ...data, externalReference: letter } });
      const reference = `order-${letter}`;
      await expectationsOf(app).expect({ reference, transactionId: `txn_${letter.repeat(30)}` });
    }
    const page = await app.open(browser(), '', { viewport: { width: 1440, height: 900 } });
    const post = (action: string, body: object) =>
      page.evaluate(
        ([path, json]) =>
          fetch(`${location.pathname}api/${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-payments-console': '1' },
            body: json!,
          }),
        [action, JSON.stringify(body)],
      );
    for (const letter of LETTERS) await post('pause', { handler: `Nobody.${letter}` });
    for (const list of ['events', 'failures', 'expectations', 'audit']) {
      await page.goto(`${app.url}#/${list}`);
      await page.reload();
      await page.locator('.cards tbody tr').nth(15).waitFor();
      const rows = await visibleRows(page);
      expect([list, rows >= 15, rows]).toEqual([list, true, rows]);
    }
    await page.goto(`${app.url}#/events/default/evt_a`);
    const first = page.getByRole('article').first();
    await first.waitFor();
    expect(await first.getAttribute('aria-label')).toBe('Orders.markPaid');
    await page.goto(`${app.url}#/`);
    await page.locator('.figures').waitFor();
    expect(await page.locator('.figures li').first().textContent()).toContain('dead');
    const [handler] = await page.locator('.counts tbody th').allTextContents();
    expect(handler).toContain('Orders.markPaid');

    await post('pause', { handler: 'Mailer.receipt', reason: 'the mail server moves' });
    for (const force of [false, true]) {
      await post('redrive', { filter: {}, handler: 'Orders.markPaid', force, ratePerSecond: 1 });
    }
    await page.goto(`${app.url}#/events`);
    await page.reload();
    await page.locator('.cards tbody tr').nth(15).waitFor();
    await page.getByText('2 redrives').waitFor();
    expect(await visibleRows(page)).toBeGreaterThanOrEqual(15);
  });
});
