import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { cutCells, weakTexts, widthOf } from '../../support/browser/page-appearance.js';
import { ConsoleApplication, changed, confirm } from '../../support/console/console-browser.js';
import { expectationsOf, TransactionService } from '../../support/console/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';

const row = (page: Page, reference: string) =>
  page.locator('.expectations tbody tr').filter({ hasText: reference });
const rows = (page: Page) => page.locator('.expectations tbody tr');

/** An application with one expectation in each state, and its service. */
async function openBook() {
  const service = await TransactionService.start();
  const app = await ConsoleApplication.start(service.options);
  const expectations = expectationsOf(app);
  service.statuses.set('t-found', 'complete').set('t-pending', 'pending');
  await expectations.expect({ reference: 'order-waiting' });
  await expectations.expect({ reference: 'order-found', transactionId: 't-found' });
  await expectations.expect({ reference: 'order-hook', transactionId: 't-hook' });
  await expectations.expect({ reference: 'order-cancelled', transactionId: 't-gone' });
  await expectations.expect({
    reference: 'order-overdue',
    transactionId: 't-pending',
    dueBy: new Date(Date.now() - 1000),
  });
  await expectations.cancel('order-cancelled');
  await app.receive({
    id: 'evt_1',
    data: { transactionId: 't-hook', amount: '1250.00', currency: 'KES' },
  });
  await expectations.askNow([{ company: 'default', reference: 'order-found' }]);
  await eventually(async () => {
    expect(await expectations.get('order-found')).toMatchObject({ state: 'fulfilled' });
    expect(await expectations.get('order-overdue')).toMatchObject({ state: 'overdue' });
  });
  return {
    app,
    service,
    expectations,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

describeInBrowser('expectations in the inbox console', (browser) => {
  describe('with expectations that only the last test changes', () => {
    let book: Awaited<ReturnType<typeof openBook>>;
    beforeAll(async () => {
      book = await openBook();
    });
    afterAll(() => book?.[Symbol.asyncDispose]());

    it('EX-12 the console lists and filters expected payments', async () => {
      const page = await book.app.open(browser());
      await page.getByRole('link', { name: 'Expectations', exact: true }).click();
      await page.getByText('5 expectations on this page').waitFor();
      expect(await row(page, 'order-waiting').textContent()).toMatch(
        /no transaction id yet.*waiting.*not asked yet/,
      );
      expect(await row(page, 'order-hook').textContent()).toMatch(
        /fulfilled.*KES.1,250\.00.*by webhook/,
      );
      expect(await row(page, 'order-overdue').textContent()).toMatch(
        /not paid.*the service says: pending.*asked once/,
      );
      expect(await row(page, 'order-cancelled').textContent()).toMatch(/closed by the application/);
      const shown = page.getByRole('navigation', { name: 'Which expectations' });
      for (const [name, reference] of [
        ['Waiting (1)', 'order-waiting'],
        ['Not paid (1)', 'order-overdue'],
        ['Found by poll', 'order-found'],
        ['Closed', 'order-cancelled'],
      ] as const) {
        await shown.getByRole('link', { name }).click();
        await page.getByText('1 expectation on this page').waitFor();
        await row(page, reference).waitFor();
      }
      await shown.getByRole('link', { name: 'Unknown (0)' }).click();
      await page.getByText('No expectation matches.').waitFor();
      await shown.getByRole('link', { name: 'Contradictory' }).click();
      await page.getByText('No expectation matches.').waitFor();
      await shown.getByRole('link', { name: 'All' }).click();
      await row(page, 'order-hook').waitFor();
    });

    it('OP-30 a link downloads the filtered list as a CSV file', async () => {
      const page = await book.app.open(browser(), 'expectations?show=closed');
      await row(page, 'order-cancelled').waitFor();
      const download = page.waitForEvent('download');
      await page.getByRole('link', { name: 'Download CSV' }).click();
      const file = await download;
      expect(file.suggestedFilename()).toMatch(/^expectations-[\d-]+\.csv$/);
      const lines = (await readFile(await file.path(), 'utf8')).split('\r\n');
      expect(lines).toHaveLength(3);
      expect(lines[1]).toContain(',order-cancelled,t-gone,cancelled,');
    });

    it('EX-12 the page of an event shows whether the event came by webhook or by poll', async () => {
      const page = await book.app.open(browser(), 'expectations');
      const facts = page.locator('.facts');
      await row(page, 'order-found').getByRole('link', { name: 'transaction' }).click();
      await facts.getByText('poll: the module asked the service').waitFor();
      await page.goBack();
      await row(page, 'order-hook').getByRole('link', { name: 'transaction' }).click();
      await facts.getByText('webhook: the service sent it').waitFor();
    });

    it('EX-12 the console marks an expectation whose result contradicts an earlier result, and shows invisible characters of the result as escapes', async () => {
      const page = await book.app.open(browser());
      await changed(page, 'expectations', (body) => ({
        ...body,
        expectations: (body['expectations'] as object[]).map((one, index) => ({
          ...one,
          contradiction: index === 0 ? 'the service reports <b>\u202etransaction.declined' : null,
        })),
      }));
      await page.goto(`${book.app.url}#/expectations`);
      await page.locator('.badge.contradictory').waitFor();
      expect(await rows(page).first().textContent()).toContain('<b>\\u202etransaction.declined');
    });

    it('EX-12 the page of expectations has readable contrast and fits a phone in both color schemes', async () => {
      const long = 'x'.repeat(200);
      await book.expectations.expect({ reference: long, transactionId: 'y'.repeat(255) });
      const page = await book.app.open(browser(), 'expectations', { timezoneId: 'Africa/Nairobi' });
      await row(page, long).waitFor();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width: 390, height: 844 });
        expect(await widthOf(page)).toBe(390);
        expect(await cutCells(page)).toEqual([]);
        expect([colorScheme, await weakTexts(page)]).toEqual([colorScheme, []]);
        await page.setViewportSize({ width: 1280, height: 800 });
        expect([colorScheme, await weakTexts(page)]).toEqual([colorScheme, []]);
        await page.getByRole('button', { name: 'Ask now … order-waiting' }).click();
        await page.getByRole('dialog').waitFor();
        expect([colorScheme, await weakTexts(page)]).toEqual([colorScheme, []]);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
    });
  });

  it('EX-12 after a confirmation, the console makes the polls of one expectation, or of all expectations on the page, due now', async () => {
    await using book = await openBook();
    const { service } = book;
    const page = await book.app.open(browser(), 'expectations?show=unpaid');
    const button = page.getByRole('button', { name: 'Ask now … order-overdue' });
    await button.click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.locator('.scope').textContent()).toBe('Expectation order-overdue');
    const before = service.lookups.length;
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect(service.lookups).toHaveLength(before);

    service.statuses.set('t-pending', 'complete');
    await button.click();
    await confirm(page);
    await page.getByText('1 poll made due.').waitFor();
    await page.getByText('No expectation matches.').waitFor();
    await page.getByRole('link', { name: 'All', exact: true }).click();
    await row(page, 'order-overdue').getByText('by poll').waitFor();
    await page.getByRole('button', { name: /^Ask now about all/ }).click();
    expect(await dialog.locator('.scope').textContent()).toBe('Expectation order-waiting');
    await confirm(page);
    await page.getByText('1 poll made due.').waitFor();
  });

  it('EX-21 an operator closes an overdue payment with a note, and the payment no longer counts as overdue', async () => {
    await using book = await openBook();
    await book.expectations.expect({
      reference: 'order-unknown',
      transactionId: 't-nowhere',
      dueBy: new Date(0),
    });
    const page = await book.app.open(browser(), 'expectations?show=unknown');
    const badge = page.locator('.masthead .overdue');
    await badge.getByText('1 unknown payment').waitFor();
    expect(await row(page, 'order-unknown').textContent()).toMatch(/unknown.*404.*asked/);
    await page.getByRole('button', { name: 'Close … order-unknown' }).click();
    const dialog = page.getByRole('dialog');
    const close = dialog.getByRole('button', { name: 'Close', exact: true });
    expect(await close.isDisabled()).toBe(true);
    await dialog.getByLabel(/^Note/).fill(' The customer paid in cash. ');
    await close.click();
    await page.getByText('1 expectation closed.').waitFor();
    await page.getByText('No expectation matches.').waitFor();
    await badge.waitFor({ state: 'detached' });
    await page.goto(`${book.app.url}#/expectations?show=closed`);
    await row(page, 'order-unknown').getByText('The customer paid in cash.').waitFor();
    expect(await row(page, 'order-unknown').textContent()).toMatch(
      /closed by ada, \d.*: The customer paid in cash\./,
    );
    expect(await page.getByRole('button', { name: 'Close … order-unknown' }).count()).toBe(0);
  });

  it('EX-12 the console shows expectations and overdue payments only with the option reconcile', async () => {
    await using book = await openBook();
    const page = await book.app.open(browser());
    await page.locator('.figures').getByText('1 not paid, 1 expected payment waits').waitFor();
    expect(await page.locator('.masthead .overdue').count()).toBe(0);
    await book.expectations.expect({
      reference: 'order-unknown',
      transactionId: 't-nowhere',
      dueBy: new Date(0),
    });
    await page.locator('.masthead').getByRole('link', { name: '1 unknown payment' }).click();
    await row(page, 'order-unknown').waitFor();
    expect(await rows(page).count()).toBe(1);
    await using without = await ConsoleApplication.start();
    const other = await without.open(browser());
    await other.locator('.figures').waitFor();
    expect(await other.getByText('Expectations').count()).toBe(0);
    expect(await other.getByText('overdue').count()).toBe(0);
  });
});
