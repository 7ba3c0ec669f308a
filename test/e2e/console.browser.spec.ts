import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { none, sqliteInbox } from 'nestjs-payments';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.js';
import { ConsoleApplication, asked, changed, confirm } from '../support/console.browser.js';
import { delivery } from '../support/handler.application.js';
import { post, startOn, states } from '../support/inbox.application.js';
import { isFocused } from '../support/page.looks.js';
import { eventually } from '../support/eventually.js';

const LEDGER = 'the ledger is closed';

/** The number of a handler's deliveries in a state, as the overview's table tells it. */
const count = (page: Page, handler: string, state: string) =>
  page.getByRole('row', { name: handler }).locator(`[data-state=${state}]`);

const card = (page: Page, handler: string) => page.getByRole('article', { name: handler });

async function text(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).textContent()) ?? '';
}

describeInBrowser('the inbox console in a browser', (browser) => {
  it('shows a failed handler, which is fixed, redriven from the page and then done', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    await count(page, 'Orders.markPaid', 'dead').getByRole('link').click();
    await page.getByText('Filter: dead, Orders.markPaid').waitFor();
    await page.getByRole('link', { name: 'evt_1' }).click();

    const delivery = card(page, 'Orders.markPaid');
    await delivery.getByText('dead', { exact: true }).waitFor();
    expect(await delivery.getByRole('table').textContent()).toContain(LEDGER);
    expect(await card(page, 'Mailer.receipt').textContent()).toContain('done');
    expect(await text(page, '.payload')).toContain('"id": "evt_1"');

    app.handlers.trouble = null;
    await delivery.getByRole('button', { name: /^Redrive/ }).click();
    await confirm(page);
    await page.getByText('1 delivery of 1 event redriven.').waitFor();
    await delivery.getByText(', done').waitFor();
    expect(await app.states('evt_1')).toEqual({
      'Orders.markPaid': 'done',
      'Mailer.receipt': 'done',
    });
    expect(app.handlers.ran.filter((one) => one.startsWith('receipt'))).toHaveLength(1);
    await eventually(async () => expect(await delivery.locator('tbody tr').count()).toBe(2));
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await page.getByText('No event matches.').waitFor();
    expect(
      app.merchant.log.matching(/"ada": redrive 1 selected events.*Orders\.markPaid.*deliveries: 1/)
        .length,
    ).toBeGreaterThan(0);
  });

  it('SE-09 shows stale events in the overview and the list, and runs one from its page', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_old', timestamp: '2026-01-01T00:00:00.000Z' });
    expect(app.handlers.ran).toEqual([]);
    const page = await app.open(browser());
    await page.getByRole('link', { name: '1 stale' }).click();
    await page.getByText('Filter: stale').waitFor();
    await page.getByRole('row', { name: /evt_old stale/ }).waitFor();
    await page.getByRole('link', { name: 'evt_old' }).click();
    await page.getByText('It was too old when it was received').waitFor();
    await page.getByRole('button', { name: 'Run the handlers there are now' }).click();
    await confirm(page);
    await card(page, 'Orders.markPaid').getByText(', done').waitFor();
    expect(app.handlers.ran.toSorted()).toEqual(['markPaid evt_old', 'receipt evt_old']);
  });

  it('asks before it acts, from the safe side: cancelling changes nothing', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' });
    const ran = [...app.handlers.ran];
    const page = await app.open(browser(), 'events/default/evt_1');
    const redrive = card(page, 'Orders.markPaid').getByRole('button', { name: /^Redrive/ });
    for (const leave of [
      () => page.keyboard.press('Escape'),
      // The focus is on the safe button.
      () => page.keyboard.press('Enter'),
      () => page.getByRole('button', { name: 'Cancel' }).click(),
    ]) {
      await redrive.click();
      const dialog = await asked(page);
      expect(await dialog.textContent()).toContain('1 delivery of 1 event will run.');
      await leave();
      await dialog.waitFor({ state: 'detached' });
      expect(await isFocused(redrive)).toBe(true);
    }
    expect(await app.states('evt_1')).toEqual({
      'Orders.markPaid': 'dead',
      'Mailer.receipt': 'done',
    });
    expect(app.handlers.ran).toEqual(ran);
    expect(app.merchant.log.matching(/"ada": redrive(?!.*counted only)/)).toEqual([]);
  });

  it('redrives a selection, and leaves what was not selected', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' }, { id: 'evt_2' }, { id: 'evt_3' });
    app.handlers.trouble = null;
    const page = await app.open(browser(), 'events?state=dead');
    for (const id of ['evt_1', 'evt_3']) await page.getByLabel(`Select ${id}`).check();
    await page.getByText('2 events selected').waitFor();
    await page.getByRole('button', { name: /^Redrive/ }).click();
    expect(await (await asked(page)).textContent()).toContain('2 deliveries of 2 events');
    await confirm(page);
    await eventually(async () => expect(await page.locator('.events tbody tr').count()).toBe(1));
    // They leave the list of dead deliveries before they run.
    for (const id of ['evt_1', 'evt_3']) await app.settled(id);
    expect((await app.states('evt_1'))['Orders.markPaid']).toBe('done');
    expect((await app.states('evt_2'))['Orders.markPaid']).toBe('dead');
    expect((await app.states('evt_3'))['Orders.markPaid']).toBe('done');
  });

  it('redrives all that match the filter, those on other pages too, having counted them', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive(...Array.from({ length: 52 }, (_, index) => ({ id: `evt_${index}` })));
    await app.receive({ id: 'test', eventType: 'webhook.test' });
    app.handlers.trouble = null;
    const page = await app.open(browser(), 'events?state=dead&eventType=transaction.completed');
    await page.getByLabel('All on this page').check();
    await page.getByText('50 events selected').waitFor();
    await page.getByRole('button', { name: 'Select all that match the filter' }).click();
    await page.getByRole('button', { name: /^Redrive/ }).click();
    expect(await (await asked(page)).textContent()).toContain('52 deliveries of 52 events');
    await confirm(page);
    await page.getByText('No event matches.').waitFor();
    await eventually(async () => {
      const done = await app.inbox.list({ handler: 'Orders.markPaid', state: 'done', limit: 100 });
      expect(done.events).toHaveLength(52);
    });
    expect((await app.states('test'))['Orders.markPaid']).toBe('dead');
  });

  it('skips a delivery, which stays in the inbox', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser(), 'events/default/evt_1');
    const delivery = card(page, 'Orders.markPaid');
    await delivery.getByRole('button', { name: /^Skip/ }).click();
    await confirm(page);
    await delivery.getByText('skipped', { exact: true }).waitFor();
    expect((await app.states('evt_1'))['Orders.markPaid']).toBe('skipped');
    expect(
      app.merchant.log.matching(/"ada": skip 1 selected events.*deliveries: 1/).length,
    ).toBeGreaterThan(0);
  });

  it('runs done deliveries again only where that is said as well', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1', eventType: 'webhook.test' });
    const page = await app.open(browser(), 'events/default/evt_1');
    await card(page, 'Orders.markPaid')
      .getByRole('button', { name: /^Run again/ })
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('There is nothing to redrive').waitFor();
    expect(await dialog.locator('button[type=submit]').isDisabled()).toBe(true);
    await dialog.getByLabel(/^Run again although done/).check();
    await confirm(page);
    await eventually(() => expect(app.handlers.ran).toEqual(['markPaid evt_1', 'markPaid evt_1']));
  });

  it('pauses a handler and resumes it', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await page.getByRole('button', { name: 'Pause Orders.markPaid' }).click();
    await confirm(page);
    await page.getByText('Orders.markPaid is paused.').waitFor();
    expect((await app.inbox.stats()).paused).toEqual(['Orders.markPaid']);
    await page.getByText('Paused: Orders.markPaid').waitFor();

    await page.getByRole('button', { name: 'Resume Orders.markPaid' }).click();
    await confirm(page);
    await page.getByText('Orders.markPaid is resumed.').waitFor();
    expect((await app.inbox.stats()).paused).toEqual([]);
    await eventually(async () => expect(await page.getByText('Paused:').count()).toBe(0));
    const lines = app.merchant.log.matching(/"ada": (pause|resume) handler "Orders\.markPaid"/);
    expect(lines).toHaveLength(2);
  });

  it('shows what is not summarised yet as unknown, not as zero', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    await page.getByText('No closed minute yet.').waitFor();
    for (const title of ['done', 'failed', 'p95']) {
      expect((await count(page, 'Orders.markPaid', title).textContent())!.trim()).toBe('–');
    }
    const received = page.getByRole('listitem').filter({ hasText: 'no closed minute yet' });
    expect(await received.textContent()).toMatch(/^– received/);
    expect(await page.getByText('Nothing received yet.').count()).toBe(0);
  });

  it('IN-28 shows counts beyond 10,000 as 10,000+', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    const many = { count: 10_000, more: true };
    await changed(page, 'overview', (overview) => ({
      ...overview,
      stats: {
        ...(overview['stats'] as object),
        deliveries: ['Orders.markPaid', 'Mailer.receipt'].map((handler) => ({
          handler,
          state: 'dead',
          ...(handler === 'Orders.markPaid' ? many : { count: 3, more: false }),
        })),
        unhandled: many,
      },
    }));
    await page.reload();
    await count(page, 'Orders.markPaid', 'dead').getByText('10,000+', { exact: true }).waitFor();
    await count(page, 'Mailer.receipt', 'dead').getByText('3', { exact: true }).waitFor();
    await count(page, 'All', 'dead').getByText('10,003+', { exact: true }).waitFor();
    await page.getByRole('link', { name: '10,003+ dead', exact: true }).waitFor();
    await page.getByRole('link', { name: '10,000+ unhandled' }).waitFor();
  });

  it('shows repeats of a transaction on the page of the first event', async () => {
    await using app = await ConsoleApplication.start();
    const data = { transactionId: 't-1' };
    await app.receive({ id: 'evt_1', data });
    await app.send(delivery({ id: 'evt_2', data }));
    const page = await app.open(browser(), 'events/default/evt_1');
    const repeats = page.getByRole('region', { name: 'Repeats' });
    await repeats.getByText('evt_2').waitFor();
    await page.goto(`${app.url}#/events`);
    await page.getByText('1 event on this page').waitFor();
  });

  it('forgets a handler that only the database knows, and skips its deliveries', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'payments-forget-'));
    const inbox = () => sqliteInbox({ file: join(folder, 'inbox.db') });
    const fail = () => {
      throw new Error(LEDGER);
    };
    const old = await startOn({ inbox }, { 'Old.handler': fail }, { worker: { retry: none } });
    await post(old, 'evt_1');
    await eventually(async () =>
      expect(await states(old, 'evt_1')).toEqual({ 'Old.handler': 'dead 1' }),
    );
    await old.app.close();
    await using app = await ConsoleApplication.start({ inbox: inbox() });
    const page = await app.open(browser());
    const row = page.getByRole('row', { name: 'Old.handler' });
    await row.getByText('not in this process; last seen').waitFor();
    expect(await page.getByRole('button', { name: 'Forget Orders.markPaid' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Forget Old.handler' }).click();
    await (await asked(page)).getByText('Its pending and dead deliveries are skipped').waitFor();
    await confirm(page);
    await page.getByText('Old.handler is forgotten: 1 delivery skipped.').waitFor();
    await row.waitFor({ state: 'detached' });
    expect(await app.states('evt_1')).toEqual({ 'Old.handler': 'skipped' });
    expect(
      app.merchant.log.matching(/"ada": forget handler "Old\.handler", deliveries: 1/),
    ).toHaveLength(1);
    await rm(folder, { recursive: true });
  });

  it('keeps the dialog, with the reason, where an action fails', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await page.getByRole('button', { name: 'Pause Orders.markPaid' }).click();
    const dialog = await asked(page);
    app.door.open = false;
    await dialog.locator('button[type=submit]').click();
    await dialog.getByRole('alert').getByText('You are not signed in any more').waitFor();
    expect((await app.inbox.stats()).paused).toEqual([]);
    expect(await dialog.getByRole('button', { name: 'Cancel' }).isEnabled()).toBe(true);
  });

  it('shows live counts and new events without a reload, and moves nothing under the operator', async () => {
    await using app = await ConsoleApplication.start();
    const overview = await app.open(browser());
    await overview.getByText('Nothing received yet.').waitFor();
    const list = await app.open(browser(), 'events');
    await list.getByText('Nothing received yet.').waitFor();

    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' });
    await count(overview, 'Orders.markPaid', 'dead').getByText('1', { exact: true }).waitFor();
    await overview.locator('.newest time').waitFor();
    await list.getByRole('button', { name: '1 new event: show' }).click();
    await list.getByRole('link', { name: 'evt_1' }).waitFor();
    await app.receive({ id: 'evt_2' }, { id: 'evt_3' });
    await list.getByRole('button', { name: '2 new events: show' }).waitFor();
    expect(await list.locator('.events tbody tr').count()).toBe(1);
  });
});
