import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { none, PaymentInboxError } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { Page } from 'playwright-core';
import { isFocused } from '../../support/browser/page-appearance.js';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import {
  ConsoleApplication,
  changed,
  confirm,
  countedDialog,
} from '../../support/console/console-browser.js';
import { post, startOn, states } from '../../support/inbox/inbox-application.js';
import { eventually } from '../../support/time/waiting.js';

const LEDGER = 'the ledger is closed';

/** The cell of the overview with the number of a handler's deliveries in a state. */
const count = (page: Page, handler: string, state: string) =>
  page.getByRole('row', { name: handler }).locator(`[data-state=${state}]`);

const card = (page: Page, handler: string) => page.getByRole('article', { name: handler });

async function text(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).textContent()) ?? '';
}

describeInBrowser('actions of the inbox console in a browser', (browser) => {
  it('the console redrives a delivery whose handler failed and is fixed', async () => {
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
      app.merchant.log.matching(
        /"ada": redrove 1 delivery of event "evt_1" of handler "Orders\.markPaid"/,
      ).length,
    ).toBeGreaterThan(0);
  });

  it('SE-09 the console shows stale events in the overview and the list, and runs a stale event from the page of the event', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_old', timestamp: '2026-01-01T00:00:00.000Z' });
    expect(app.handlers.ran).toEqual([]);
    const page = await app.open(browser());
    await page.getByRole('link', { name: '1 stale' }).click();
    await page.getByText('Filter: stale').waitFor();
    await page.getByRole('row', { name: /evt_old .*stale/ }).waitFor();
    await page.getByRole('link', { name: 'evt_old' }).click();
    await page.getByText('The event was too old when it was received').waitFor();
    await page.getByRole('button', { name: 'Run the existing handlers' }).click();
    await confirm(page);
    await card(page, 'Orders.markPaid').getByText(', done').waitFor();
    expect(app.handlers.ran.toSorted()).toEqual(['markPaid evt_old', 'receipt evt_old']);
  });

  it('the console opens a dialog with focus on Cancel before each action; cancelling changes nothing', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' });
    const ran = [...app.handlers.ran];
    const page = await app.open(browser(), 'events/default/evt_1');
    const redrive = card(page, 'Orders.markPaid').getByRole('button', { name: /^Redrive/ });
    for (const leave of [
      () => page.keyboard.press('Escape'),
      // The focus is on Cancel.
      () => page.keyboard.press('Enter'),
      () => page.getByRole('button', { name: 'Cancel' }).click(),
    ]) {
      await redrive.click();
      const dialog = await countedDialog(page);
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
    expect(app.merchant.log.matching(/"ada": (redrove|started)/)).toEqual([]);
  });

  it('the console redrives selected events only', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive({ id: 'evt_1' }, { id: 'evt_2' }, { id: 'evt_3' });
    app.handlers.trouble = null;
    const page = await app.open(browser(), 'events?state=dead');
    for (const id of ['evt_1', 'evt_3']) await page.getByLabel(`Select ${id}`).check();
    await page.getByText('2 events selected').waitFor();
    await page.getByRole('button', { name: /^Redrive/ }).click();
    expect(await (await countedDialog(page)).textContent()).toContain('2 deliveries of 2 events');
    await confirm(page);
    await eventually(async () => expect(await page.locator('.events tbody tr').count()).toBe(1));
    // The deliveries disappear from the list of dead deliveries before they run.
    for (const id of ['evt_1', 'evt_3']) await app.settled(id);
    expect((await app.states('evt_1'))['Orders.markPaid']).toBe('done');
    expect((await app.states('evt_2'))['Orders.markPaid']).toBe('dead');
    expect((await app.states('evt_3'))['Orders.markPaid']).toBe('done');
  });

  it('the console counts and redrives all events that match the filter, on all pages', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = LEDGER;
    await app.receive(...Array.from({ length: 52 }, (_, index) => ({ id: `evt_${index}` })));
    await app.receive({ id: 'test', eventType: 'webhook.test' });
    app.handlers.trouble = null;
    const page = await app.open(browser(), 'events?state=dead&eventType=transaction.completed');
    await page.getByLabel('All on this page').check();
    await page.getByText('50 events selected').waitFor();
    await page.getByRole('button', { name: 'Select all events that match the filter' }).click();
    await page.getByRole('button', { name: /^Redrive/ }).click();
    expect(await (await countedDialog(page)).textContent()).toContain('52 deliveries of 52 events');
    await confirm(page);
    await page.getByText('No event matches.').waitFor();
    await eventually(async () => {
      const done = await app.inbox.list({ handler: 'Orders.markPaid', state: 'done', limit: 100 });
      expect(done.events).toHaveLength(52);
    });
    expect((await app.states('test'))['Orders.markPaid']).toBe('dead');
  });

  it('the console skips a delivery and keeps it in the inbox', async () => {
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
      app.merchant.log.matching(/"ada": skipped 1 delivery of event "evt_1"/).length,
    ).toBeGreaterThan(0);
  });

  it('the console redrives done deliveries only if the operator selects this option', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1', eventType: 'webhook.test' });
    const page = await app.open(browser(), 'events/default/evt_1');
    await card(page, 'Orders.markPaid')
      .getByRole('button', { name: /^Run again/ })
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('There is nothing to redrive').waitFor();
    expect(await dialog.locator('button[type=submit]').isDisabled()).toBe(true);
    await dialog.getByLabel(/^Also run deliveries that are done/).check();
    await confirm(page);
    await eventually(() => expect(app.handlers.ran).toEqual(['markPaid evt_1', 'markPaid evt_1']));
  });

  it('the console pauses and resumes a handler', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await page.getByRole('button', { name: 'Pause Orders.markPaid' }).click();
    await confirm(page);
    await page.getByText('Orders.markPaid is paused.').waitFor();
    expect((await app.inbox.stats()).paused).toMatchObject([{ handler: 'Orders.markPaid' }]);
    await page.getByText('Paused: Orders.markPaid').waitFor();

    await page.getByRole('button', { name: 'Resume Orders.markPaid' }).click();
    await confirm(page);
    await page.getByText('Orders.markPaid is resumed.').waitFor();
    expect((await app.inbox.stats()).paused).toEqual([]);
    await eventually(async () => expect(await page.getByText('Paused:').count()).toBe(0));
    const lines = app.merchant.log.matching(/"ada": (paused|resumed) handler "Orders\.markPaid"/);
    expect(lines).toHaveLength(2);
  });

  it('OP-42 the console pauses a handler with a reason and an end, and shows both until the pause ends by itself', async () => {
    await using app = await ConsoleApplication.start({ worker: { retry: none, leaseMs: 1000 } });
    const page = await app.open(browser());
    await page.getByRole('button', { name: 'Pause Orders.markPaid' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Why (optional)').fill('the ledger is migrated');
    await dialog.getByLabel('Ends by itself at (optional)').fill('2020-01-01T00:00');
    await dialog.locator('button[type=submit]').click();
    await dialog.getByText('"until" must be in the future').waitFor();
    await dialog.getByLabel('Ends by itself at (optional)').fill('2999-01-01T00:00');
    await confirm(page);
    const facts = /since \d\d:\d\d:\d\d .* by ada, until .*00:00:00 .*: the ledger is migrated/s;
    await page.locator('.notice.paused').filter({ hasText: facts }).waitFor();
    await page.getByRole('row', { name: 'Orders.markPaid' }).getByText(facts).waitFor();
    const [pause] = (await app.inbox.stats()).paused;
    expect(pause).toMatchObject({ who: 'ada', until: new Date('2999-01-01T00:00') });

    const until = new Date(Date.now() + 1000);
    await app.inbox.pause('Orders.markPaid', { until });
    await page.locator('.notice.paused').waitFor({ state: 'detached' });
    expect((await app.inbox.stats()).paused).toEqual([]);
  });

  it('the console forgets a handler that is only in the database, and skips its deliveries', async () => {
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
    await (
      await countedDialog(page)
    )
      .getByText('The pending and dead deliveries of this handler are skipped')
      .waitFor();
    await confirm(page);
    await page.getByText('Old.handler is forgotten: 1 delivery skipped.').waitFor();
    await row.waitFor({ state: 'detached' });
    expect(await app.states('evt_1')).toEqual({ 'Old.handler': 'skipped' });
    expect(
      app.merchant.log.matching(/"ada": forgot handler "Old\.handler" and skipped 1 delivery/),
    ).toHaveLength(1);
    await rm(folder, { recursive: true });
  });

  it('the console keeps the dialog open and shows the reason if an action fails', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await page.getByRole('button', { name: 'Pause Orders.markPaid' }).click();
    const dialog = await countedDialog(page);
    app.session.open = false;
    await dialog.locator('button[type=submit]').click();
    await dialog.getByRole('alert').getByText('You are not signed in any more').waitFor();
    expect((await app.inbox.stats()).paused).toEqual([]);
    expect(await dialog.getByRole('button', { name: 'Cancel' }).isEnabled()).toBe(true);
  });
});

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
  it('if counting the deliveries exceeds the time limit, the dialog of the console shows a note, and the operator can still confirm the action', async () => {
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
    await page.getByText('Redrive of 51 deliveries of 51 events started.').waitFor();
  });

  it('OP-03 the console redrives one event first, then all events at a rate; every operator sees the progress and can stop the redrive', async () => {
    await using app = await afterAnOutage();
    const page = await app.open(browser(), 'failures');
    await page.getByRole('button', { name: /^Redrive …/ }).click();
    const dialog = await countedDialog(page);
    await dialog
      .getByText('Redrive all dead deliveries of Orders.markPaid with this error?')
      .waitFor();
    await dialog.getByText('takes less than a second').waitFor();
    await dialog.getByRole('button', { name: 'Redrive one first' }).click();
    await page.getByText('1 delivery of 1 event redriven: the newest that matches').waitFor();
    await app.settled('evt_50');
    expect((await app.states('evt_50'))['Orders.markPaid']).toBe('done');
    expect((await app.states('evt_49'))['Orders.markPaid']).toBe('dead');
    await page.getByRole('link', { name: 'Open the redriven event' }).click();
    await page.getByText('evt_50', { exact: true }).first().waitFor();
    await page.goBack();

    await page.getByRole('button', { name: /^Redrive …/ }).click();
    await countedDialog(page);
    await dialog.getByLabel('Events per second').fill('2');
    await dialog.getByText('takes about 25 s').waitFor();
    await confirm(page);
    await page.getByText('Redrive of 50 deliveries of 50 events started.').waitFor();
    const other = await app.open(browser(), 'events');
    const panel = other.getByRole('region', { name: 'Redrives' });
    await panel.getByText(/\d+ of 50 events, 2 per second, about \d+ s left/).waitFor();
    await panel.getByText('started by ada').waitFor();
    await panel.getByText('All dead deliveries, handler Orders.markPaid').waitFor();
    const progress = panel.getByRole('progressbar');
    await eventually(async () => expect(await progress.getAttribute('value')).toMatch(/^[1-9]/));
    await panel.getByRole('button', { name: /^Stop/ }).click();
    await panel.getByText('stopped').waitFor();
    await page.getByRole('region', { name: 'Redrives' }).getByText('stopped').waitFor();
    await other.route('**/api/redrives*', async (route) => {
      const response = await route.fetch();
      const { redrives } = (await response.json()) as { redrives: object[] };
      await route.fulfill({
        response,
        json: { redrives: redrives.map((job) => ({ ...job, failed: 3 })) },
      });
    });
    await other.reload();
    await panel.getByText(', 3 failed again').waitFor();
    await other.unrouteAll({ behavior: 'wait' });
    const { events } = await app.inbox.list({ state: 'dead', limit: 100 });
    expect(events.length).toBeGreaterThan(20);
    expect(
      app.merchant.log.matching(
        /"ada": stopped the redrive of deliveries of handler "Orders.markPaid"/,
      ),
    ).toHaveLength(1);
  });

  it('if the server rejects the request to count the deliveries, the operator cannot confirm the action in the dialog of the console', async () => {
    await using app = await afterAnOutage();
    const page = await app.open(browser(), 'events?state=dead');
    await page.getByLabel('All on this page').check();
    app.session.open = false;
    await page.getByRole('button', { name: /^Redrive/ }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('You are not signed in any more.').waitFor();
    expect(await dialog.locator('button[type=submit]').isDisabled()).toBe(true);
  });

  it('for a filter without a state, the dialog of the console names dead deliveries, or all deliveries if the operator selects force', async () => {
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

describeInBrowser('the audit trail of the inbox console', (browser) => {
  it('the audit page of the console shows each action with its operator, time and result, and each view of a payload', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = 'the ledger is closed';
    await app.receive({ id: 'evt_1' });
    app.handlers.trouble = null;
    const page = await app.open(browser(), 'audit');
    await page.getByText('Nothing recorded yet.').waitFor();

    await page.goto(`${app.url}#/events/default/evt_1`);
    await page.getByRole('button', { name: /^Redrive/ }).click();
    await confirm(page);
    await page.getByText('1 delivery of 1 event redriven.').waitFor();
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    const rows = page.locator('.audit tbody tr');
    await eventually(async () => expect(await rows.count()).toBe(2));
    const [action, view] = await rows.allInnerTexts();
    expect(action).toMatch(
      /\d\d:\d\d:\d\d \S+\s+ada\s+redrove 1 delivery of event "evt_1" of handler "Orders.markPaid"\s+done/s,
    );
    expect(view).toMatch(/ada\s+viewed event "evt_1" of company "default"\s+done/s);

    await page.getByRole('link', { name: 'Actions', exact: true }).click();
    await eventually(async () => expect(await rows.count()).toBe(1));
    await page.reload();
    await rows.getByText('redrove').waitFor();
    expect(page.url()).toContain('#/audit?show=actions');
    await page.getByRole('link', { name: 'Views of payloads' }).click();
    await rows.getByRole('link', { name: 'evt_1' }).click();
    await page.getByRole('heading', { level: 1, name: 'transaction.completed' }).waitFor();
  });

  it('OP-43 the audit page of the console shows what one operator did on one day', async () => {
    await using app = await ConsoleApplication.start();
    const entry = { text: 'did it', event: null, outcome: 'done', error: null } as const;
    await app.inbox.recordAudit({ ...entry, who: 'ann' });
    await app.inbox.recordAudit({ ...entry, who: 'bob' });
    const page = await app.open(browser(), 'audit?show=actions');
    const rows = page.locator('.audit tbody tr');
    await eventually(async () => expect(await rows.count()).toBe(2));
    await page.locator('.filters summary').click();
    await page.getByLabel('Who').fill('Ann');
    await page.getByLabel('From').fill('2020-01-01T00:00:00');
    await eventually(async () => expect(await rows.allInnerTexts()).toHaveLength(1));
    expect(await rows.innerText()).toContain('ann');
    expect(await page.locator('.filters summary').innerText()).toMatch(
      /Filter: Ann, from 1 Jan|Filter: Ann, from Jan 1/,
    );
    await page.getByLabel('Before').fill('2020-01-02T00:00:00');
    await page.getByText('No entry matches.').waitFor();
    await page.reload();
    await page.getByText('No entry matches.').waitFor();
    await page.locator('.filters summary').click();
    await page.getByRole('button', { name: 'Clear' }).click();
    await eventually(async () => expect(await rows.count()).toBe(2));
    expect(page.url()).toContain('#/audit?show=actions');
  });

  it('OP-43 the audit page of the console shows the entries of an earlier process, an action without a result as unknown, and a message while the audit is not reachable', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'payments-audit-'));
    const inbox = () => sqliteInbox({ file: join(folder, 'inbox.db') });
    {
      await using before = await ConsoleApplication.start({ inbox: inbox() });
      const entry = { who: 'ann', event: null, error: null };
      await before.inbox.recordAudit({ ...entry, text: 'did it', outcome: 'done' });
      await before.inbox.recordAudit({ ...entry, text: 'pause it', outcome: 'unknown' });
    }
    await using app = await ConsoleApplication.start({ inbox: inbox() });
    const page = await app.open(browser(), 'audit');
    await page.getByText('did it').waitFor();
    const [unknown, done] = await page.locator('.audit tbody tr').allInnerTexts();
    expect(unknown).toMatch(/pause it\s+result unknown\s+The action still runs, or its process/);
    expect(unknown).not.toContain('failed');
    expect(done).toMatch(/did it\s+done$/);
    app.inbox.audit = async () => {
      throw new PaymentInboxError('inbox_unavailable', 'no database');
    };
    await page.getByText('The audit is not reachable.').waitFor();
    await rm(folder, { recursive: true });
  });

  it('the audit page of the console shows rejected actions with their cause, HTML as plain text, and U+202E as an escape', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser(), 'audit');
    const entry = {
      at: '2026-11-20T08:00:00.000Z',
      text: 'could not pause handler "<img src=x onerror=alert(1)>\u202e"',
      event: null,
    };
    const entries = Array.from({ length: 100 }, (_, index) => ({
      ...entry,
      id: index,
      who: index === 0 ? null : '<b>ann</b>',
      outcome: 'failed',
      error: 'No handler has this <i>name</i>.',
    }));
    await changed(page, 'audit', (body, query) => ({
      ...body,
      entries: query.get('limit') === '100' ? entries : [...entries, { ...entries[0], id: 100 }],
    }));
    await page.reload();
    await page.getByText('100 entries on this page').waitFor();
    const [first, second] = await page.locator('.audit tbody tr').allInnerTexts();
    expect(first).toContain('unknown');
    expect(second).toContain('<b>ann</b>');
    expect(second).toContain('pause handler "<img src=x onerror=alert(1)>\\u202e"');
    expect(second).toMatch(/rejected or failed\s+No handler has this <i>name<\/i>\./);
    await page.getByRole('link', { name: 'Show all' }).click();
    await page.getByText('101 entries on this page').waitFor();
  });
});
