import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { ConsoleApplication, countedDialog, confirm } from '../support/console/console-browser.js';
import { eventually } from '../support/time/waiting.js';

/** Selects all events that match the filter, and opens the dialog to redrive them. */
async function redriveAll(page: Page): Promise<void> {
  await page.getByLabel('All on this page').check();
  await page.getByRole('button', { name: 'Select all events that match the filter' }).click();
  await page.getByRole('button', { name: /^Redrive/ }).click();
}

/** Starts with more dead deliveries than a page of the list shows. */
async function afterAnOutage(): Promise<ConsoleApplication> {
  const app = await ConsoleApplication.start();
  app.handlers.trouble = 'the ledger is closed';
  await app.receive(...Array.from({ length: 51 }, (_, index) => ({ id: `evt_${index}` })));
  app.handlers.trouble = null;
  return app;
}

describeInBrowser('the dialog of the inbox console', (browser) => {
  it('the dialog of the console can be confirmed if counting exceeds the time limit, and shows a note', async () => {
    await using app = await afterAnOutage();
    const page = await app.open(browser());
    // The test ends the time limits itself.
    await page.addInitScript(() => {
      const limits: AbortController[] = [];
      AbortSignal.timeout = () => {
        limits.push(new AbortController());
        return limits.at(-1)!.signal;
      };
      const endLimits = () => {
        for (const limit of limits) limit.abort(new DOMException('too late', 'TimeoutError'));
      };
      Object.assign(globalThis, { endLimits });
    });
    const counting = new Promise<void>((resolve) => {
      void page.route('**/api/redrive', (route) =>
        (route.request().postDataJSON() as { dryRun: boolean }).dryRun
          ? resolve()
          : route.continue(),
      );
    });
    await page.goto(`${app.url}#/events?state=dead`);
    await page.reload();
    await redriveAll(page);
    const dialog = page.getByRole('dialog');
    await counting;
    expect(await dialog.locator('button[type=submit]').isDisabled()).toBe(true);
    await page.evaluate(() => (globalThis as unknown as { endLimits(): void }).endLimits());
    await dialog.getByText('The server did not respond within 15 s.').waitFor();
    await dialog.getByText('The deliveries could not be counted. They will run.').waitFor();
    await confirm(page);
    await page.getByText('51 deliveries of 51 events redriven.').waitFor();
  });

  it('the dialog of the console cannot be confirmed if counting is rejected', async () => {
    await using app = await afterAnOutage();
    const page = await app.open(browser(), 'events?state=dead');
    await page.getByLabel('All on this page').check();
    app.session.open = false;
    await page.getByRole('button', { name: /^Redrive/ }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('You are not signed in any more.').waitFor();
    expect(await dialog.locator('button[type=submit]').isDisabled()).toBe(true);
  });

  it('the dialog of the console names dead deliveries for a filter without a state, and all deliveries with force', async () => {
    await using app = await afterAnOutage();
    const page = await app.open(browser(), 'events?handler=Orders.markPaid&search=evt');
    await page.getByText('50 events on this page').waitFor();
    await redriveAll(page);
    const dialog = await countedDialog(page);
    const scope = dialog.locator('.scope');
    const rest = 'deliveries, handler Orders.markPaid, that match search evt';
    expect(await scope.textContent()).toBe(`All dead ${rest}`);
    expect(await dialog.textContent()).toContain('51 deliveries of 51 events will run.');
    await dialog.getByLabel(/^Also run deliveries that are done/).check();
    await eventually(async () => expect(await scope.textContent()).toBe(`All ${rest}`));
  });

  it('the dialog of the console closes if the operator goes back to another page', async () => {
    await using app = await afterAnOutage();
    const page = await app.open(browser(), 'events');
    await page.getByRole('link', { name: 'evt_50' }).click();
    await page.getByRole('button', { name: 'Redrive … Orders.markPaid' }).click();
    const dialog = await countedDialog(page);
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('50 events on this page').waitFor();
    expect((await app.states('evt_50'))['Orders.markPaid']).toBe('dead');
  });
});
