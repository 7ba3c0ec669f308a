import { expect, it } from '@jest/globals';
import type { CappedCount } from 'nestjs-payments';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { ConsoleApplication, changed } from '../support/console/console-browser.js';
import { webhookRequest } from '../support/webhook/handler-application.js';

/** The cell of the overview with the number of a handler's deliveries in a state. */
const count = (page: Page, handler: string, state: string) =>
  page.getByRole('row', { name: handler }).locator(`[data-state=${state}]`);

/** Reloads the overview with dead deliveries of handlers, activity of each handler, and 10,000 or more unhandled events. */
async function showDead(page: Page, dead: Record<string, CappedCount>): Promise<void> {
  await changed(page, 'overview', (overview) => ({
    ...overview,
    stats: {
      ...(overview['stats'] as object),
      deliveries: Object.entries(dead).map(([handler, count]) => ({
        handler,
        state: 'dead',
        ...count,
      })),
      unhandled: { count: 10_000, more: true },
    },
    handlers: overview.handlers.map((handler) => ({
      ...handler,
      activity: { received: 9, done: 8, failed: 4, dead: 1, p50Ms: 20, p95Ms: 1500 },
    })),
  }));
  await page.reload();
}

describeInBrowser('views of the inbox console', (browser) => {
  it('IN-28 the console shows counts above 10,000 as 10,000+', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    const many = { count: 10_000, more: true };
    await showDead(page, { 'Orders.markPaid': many, 'Mailer.receipt': { count: 3, more: false } });
    await count(page, 'Orders.markPaid', 'dead').getByText('10,000+', { exact: true }).waitFor();
    await count(page, 'Mailer.receipt', 'dead').getByText('3', { exact: true }).waitFor();
    await count(page, 'All', 'dead').getByText('10,003+', { exact: true }).waitFor();
    await page.getByRole('link', { name: '10,003+ dead', exact: true }).waitFor();
    await page.getByRole('link', { name: '10,000+ unhandled' }).waitFor();
  });

  it('the console shows repeats of a transaction on the page of the first event', async () => {
    await using app = await ConsoleApplication.start();
    const data = { transactionId: 't-1' };
    await app.receive({ id: 'evt_1', data });
    await app.send(webhookRequest({ id: 'evt_2', data }));
    const page = await app.open(browser(), 'events/default/evt_1');
    const repeats = page.getByRole('region', { name: 'Repeats' });
    await repeats.getByText('evt_2').waitFor();
    await page.goto(`${app.url}#/events`);
    await page.getByText('1 event on this page').waitFor();
  });

  it('the console shows live counts without a reload, and new events only after a click', async () => {
    await using app = await ConsoleApplication.start();
    const overview = await app.open(browser());
    await overview.getByText('No event received yet.').waitFor();
    const list = await app.open(browser(), 'events');
    await list.getByText('No event received yet.').waitFor();

    app.handlers.trouble = 'the ledger is closed';
    await app.receive({ id: 'evt_1' });
    await count(overview, 'Orders.markPaid', 'dead').getByText('1', { exact: true }).waitFor();
    await overview.locator('.newest time').waitFor();
    await list.getByRole('button', { name: '1 new event: show' }).click();
    await list.getByRole('link', { name: 'evt_1' }).waitFor();
    await app.receive({ id: 'evt_2' }, { id: 'evt_3' });
    await list.getByRole('button', { name: '2 new events: show' }).waitFor();
    expect(await list.locator('.events tbody tr').count()).toBe(1);
  });

  it('the console shows the newest webhook request apart from polls, in amber if the next is late', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    const figure = page.getByRole('listitem').filter({ has: page.locator('.newest') });
    await figure.getByText(/^newest webhook/).waitFor();
    expect(await figure.getAttribute('class')).not.toContain('warn');
    expect(await figure.getByText('newest poll').count()).toBe(0);
    await changed(page, 'overview', (overview) => ({
      ...overview,
      newest: {
        webhook: new Date(Date.now() - 600_000).toISOString(),
        poll: new Date().toISOString(),
        overdue: null,
        usualGapMs: 30_000,
        late: true,
      },
    }));
    await figure.getByText(/^newest webhook .*: late, usually within 30 s$/).waitFor();
    await figure.getByText(/^newest poll /).waitFor();
    expect(await figure.getAttribute('class')).toBe('warn');
  });

  it('the console shows p50 and p95 of each handler, and links all dead deliveries to the failures', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    const three = { count: 3, more: false };
    await showDead(page, { 'Orders.markPaid': three, 'Mailer.receipt': three });
    for (const [state, text] of [
      ['done', '8'],
      ['failed', '4'],
      ['p50', '20 ms'],
      ['p95', '1.5 s'],
    ] as const) {
      await count(page, 'Orders.markPaid', state).getByText(text, { exact: true }).waitFor();
    }
    const hrefOf = (name: string) =>
      page.getByRole('link', { name, exact: true }).getAttribute('href');
    expect(await hrefOf('6 dead')).toBe('#/failures');
    expect(await hrefOf('6 deliveries dead')).toBe('#/failures');
    expect(await hrefOf('3 deliveries dead of Mailer.receipt')).toBe(
      '#/events?state=dead&handler=Mailer.receipt',
    );
  });
});
