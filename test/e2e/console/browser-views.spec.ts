import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { PaymentsApiService } from 'nestjs-payments';
import type { CappedCount } from 'nestjs-payments';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import {
  ConsoleApplication,
  changed,
  closedMinutes,
  NO_DELIVERIES,
  confirm,
  countedDialog,
} from '../../support/console/console-browser.js';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { company, SECRET } from '../../support/webhook/webhook-application.js';
import { isPaintedIn } from '../../support/browser/page-appearance.js';

/** The cell of the overview with the number of a handler's deliveries in a state. */
const count = (page: Page, handler: string, state: string) =>
  page.getByRole('row', { name: handler }).locator(`[data-state='${state}']`);

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
      activity: { ...NO_DELIVERIES, done: 8, dead: 1, pending: 2, p50Ms: 20, p95Ms: 1500 },
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

  it('the console shows live counts without a reload, and new events only after a click', async () => {
    await using app = await ConsoleApplication.start();
    const overview = await app.open(browser());
    await overview.getByText('No event received yet.').waitFor();
    const list = await app.open(browser(), 'events');
    await list.getByText('No event received yet.').waitFor();

    app.handlers.trouble = 'the ledger is closed';
    await app.receive({ id: 'evt_1' });
    await count(overview, 'Orders.markPaid', 'dead').getByText('1', { exact: true }).waitFor();
    await overview.locator('.newest time').first().waitFor();
    await list.getByRole('button', { name: '1 new event: show' }).click();
    await list.getByRole('link', { name: 'evt_1' }).waitFor();
    await app.receive({ id: 'evt_2' }, { id: 'evt_3' });
    await list.getByRole('button', { name: '2 new events: show' }).waitFor();
    expect(await list.locator('.events tbody tr').count()).toBe(1);
  });

  it('OP-20 the console shows the arrival of webhook requests separately from polls, and turns amber if the next request is late', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    const tile = page.getByRole('region', { name: 'Webhook requests' });
    await tile.getByText('Accepted now', { exact: true }).waitFor();
    expect(await tile.getAttribute('class')).toBe('arrivals ');
    expect(await page.getByText('newest poll').count()).toBe(0);
    const lastAcceptedAt = new Date(Date.now() - 600_000).toISOString();
    const poll = new Date().toISOString();
    await changed(page, 'overview', (overview) => ({
      ...overview,
      arrivals: {
        ...(overview['arrivals'] as object),
        lastRequestAt: lastAcceptedAt,
        lastAcceptedAt,
        poll,
        usualGapMs: 30_000,
        late: true,
      },
    }));
    await tile.getByText('Late: accepted 10 min ago, usually within 30 s').waitFor();
    await page.getByText('newest poll').waitFor();
    expect(await tile.getAttribute('class')).toBe('arrivals warn');
  });

  it('OP-20 if all webhook requests are rejected, the console shows this and the fix, even if polls find events', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    const tile = page.getByRole('region', { name: 'Webhook requests' });
    const forged = signedWebhook({ webhookSecret: 'whsec_of_another_company' }, { id: 'evt_2' });
    for (let n = 0; n < 40; n += 1) await app.merchant.send(forged);
    await tile.getByText('All rejected: 40 requests since the last accepted one').waitFor();
    expect(await tile.getAttribute('class')).toBe('arrivals bad');
    const row = tile.getByRole('row').filter({ hasText: 'signature_mismatch' });
    expect(await row.innerText()).toMatch(
      /^signature_mismatch\s+40\s+default\s.*Check that the webhook secret of this company is the one/s,
    );
    await app.receive({ id: 'evt_3' });
    await tile.getByText(/^Accepted /).waitFor();
    expect(await tile.getAttribute('class')).toBe('arrivals ');
    await tile.getByText('2 accepted, 40 rejected').first().waitFor();
  });

  it('OP-20 the console names the company whose webhook requests are all rejected, although those of another company are accepted', async () => {
    const [acme, bolt] = [company('acme', 'whsec_of_acme'), company('bolt', 'whsec_of_bolt')];
    await using app = await ConsoleApplication.start({ companies: [acme, bolt] });
    const forged = signedWebhook({ ...bolt, webhookSecret: 'whsec_old' }, { id: 'evt_1' });
    for (let n = 0; n < 3; n += 1) await app.merchant.send(forged);
    await app.send(signedWebhook(acme, { id: 'evt_2' }));
    const page = await app.open(browser());
    const tile = page.getByRole('region', { name: 'Webhook requests' });
    await tile.getByText('All requests of company bolt rejected').waitFor();
    expect(await tile.getAttribute('class')).toBe('arrivals bad');
    expect(await tile.getByRole('paragraph').first().innerText()).toMatch(
      /^bolt: 3 requests rejected \(signature_mismatch\)\. .*Check that the webhook secret of this company is the one/,
    );
    await app.send(signedWebhook(bolt, { id: 'evt_3' }));
    await tile.getByText(/^Accepted /).waitFor();
    expect(await tile.getAttribute('class')).toBe('arrivals ');
  });

  it('OP-21 after a rotation, the console shows which secret verified a request last, and when the previous secret can be removed', async () => {
    const webhookSecret = ['whsec_new_0123456789', SECRET];
    await using app = await ConsoleApplication.start({ webhookSecret });
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    const row = page.getByRole('table', { name: 'Webhook secrets' }).getByRole('row').nth(1);
    await row.getByText('Keep it: the current secret has not verified a request yet.').waitFor();
    await row.getByText('nothing since').waitFor();
    await app.send(signedWebhook({ webhookSecret }, { id: 'evt_2' }));
    await row.getByText('Keep it until it has not been used for 24 hours.').waitFor();
    await changed(page, 'overview', ({ arrivals, ...overview }) => {
      const [secrets] = (arrivals as { secrets: [object] }).secrets;
      const previous = new Date(Date.now() - 25 * 3_600_000).toISOString();
      return {
        ...overview,
        arrivals: { ...(arrivals as object), secrets: [{ ...secrets, previous }] },
      };
    });
    await row.getByText('You can remove the previous secret.').waitFor();
    expect(await page.content()).not.toContain('whsec_');
  });

  it('OP-22 the page Processes shows where handlers run, handlers without a process, and the payments service', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser(), 'processes');
    await page.getByRole('heading', { name: '1 process running' }).waitFor();
    const rowOf = (table: string, text: string) =>
      page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: text });
    expect(await rowOf('Processes', `pid ${process.pid}, this process`).innerText()).toMatch(
      /running.*0 of 40 slots.*0 accepted, 0 rejected/s,
    );
    expect(await rowOf('Handlers', 'Mailer.receipt').innerText()).toMatch(
      /1 process.*0 of 20 slots/s,
    );
    await page.getByText('No process has requested a token or made a call').waitFor();
    await app.merchant.app
      .get(PaymentsApiService)
      .getTransaction('t-1')
      .catch(() => undefined);
    await rowOf('Payments service', 'default').getByText('token_unavailable').first().waitFor();
    await changed(page, 'overview', (overview) => ({
      ...overview,
      handlers: [...overview.handlers, { ...overview.handlers[0], name: 'gone', here: false }],
    }));
    await rowOf('Handlers', 'gone').getByText('no process').waitFor();
    await rowOf('Handlers', 'gone').getByRole('button', { name: 'Forget gone' }).waitFor();
  });

  it('the console shows p50 and p95 of each handler, and links all dead deliveries to the failures', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    const three = { count: 3, more: false };
    await showDead(page, { 'Orders.markPaid': three, 'Mailer.receipt': three });
    for (const [state, text] of [
      ['deliveries', '11'],
      ['done', '8'],
      ['dead of these', '1'],
      ['open', '2'],
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

/**
 * Responds to requests for events as a store with many events: the first `empty` responses contain no event, but a
 * `next`.
 */
async function delayed(page: Page, empty: number): Promise<string[]> {
  const requested: string[] = [];
  await page.route('**/api/events?*', async (route) => {
    const after = new URL(route.request().url()).searchParams.get('after') ?? '0';
    requested.push(after);
    const position = Number(after);
    if (position < empty) {
      await route.fulfill({ json: { events: [], next: String(position + 1) } });
    } else {
      const url = new URL(route.request().url());
      url.searchParams.delete('after');
      await route.continue({ url: url.href });
    }
  });
  return requested;
}

describeInBrowser('a list of rare events in the console', (browser) => {
  it('the console stops the search for a rare event after 25 empty responses, and continues after a click', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    const requested = await delayed(page, 26);
    await page.goto(`${app.url}#/events?company=default`);
    await page.getByText('None of the events that were searched matches.').waitFor();
    expect(requested.slice(0, 25).at(-1)).toBe('24');
    await page.getByRole('link', { name: 'Search older events' }).click();
    await page.getByRole('link', { name: 'evt_1' }).waitFor();
    await page.getByRole('link', { name: 'Previous page' }).waitFor();
  });
});

/** An application with three dead deliveries of one group, and one of another. */
async function broken(): Promise<ConsoleApplication> {
  const app = await ConsoleApplication.start();
  for (const n of [1, 2, 3]) {
    app.handlers.trouble = `HTTP 503 from ledger, request a1b2c3d${n}`;
    await app.receive({ id: `evt_${n}`, data: { transactionId: `t-${n}` } });
  }
  app.handlers.trouble = 'no such account';
  await app.receive({ id: 'evt_4', data: { transactionId: 't-4' } });
  app.handlers.trouble = null;
  return app;
}

describeInBrowser('failures in the inbox console', (browser) => {
  it('the console groups failures, shows the number of deliveries of each group, and links to the events of the group and to an example', async () => {
    await using app = await broken();
    const page = await app.open(browser());
    await page.getByRole('link', { name: '4 dead', exact: true }).first().click();
    await page.getByText('4 failed deliveries: 4 dead, 0 retrying.').waitFor();
    const group = page.getByRole('row', { name: /HTTP 503 from ledger/ });
    expect((await group.innerText()).replace(/\s+/g, ' ')).toMatch(
      /HTTP 503 from ledger, request a1b2c3d3 Orders\.markPaid dead × 3 1 From \d\d:\d\d:\d\d \S+ To \d\d:\d\d:\d\d \S+ evt_3 Redrive … Acknowledge …/,
    );
    expect(await group.locator('.varying').allInnerTexts()).toEqual(['a1b2c3d3']);
    expect(await group.getByRole('img').getAttribute('aria-label')).toMatch(
      /^Failed in each of the last 24 hours, the oldest first: (0, ){22,23}.*3$/,
    );
    expect(await group.getByRole('link', { name: 'evt_3' }).getAttribute('href')).toBe(
      '#/events/default/evt_3',
    );
    await group.getByRole('link', { name: /HTTP 503/ }).click();
    await page.getByText('3 events on this page, with 3 dead deliveries').waitFor();
    expect(await page.locator('[name=error]').inputValue()).toMatch(
      /HTTP 503 from ledger, request a1/,
    );
  });

  it('the console redrives one group of failures after a confirmation', async () => {
    await using app = await broken();
    const page = await app.open(browser(), 'failures');
    await page.getByRole('button', { name: /^Redrive … .*HTTP 503/ }).click();
    const dialog = await countedDialog(page);
    expect(await dialog.innerText()).toMatch(
      /All dead deliveries, handler Orders\.markPaid, with the error “.*HTTP 503/,
    );
    await dialog.getByText('3 deliveries of 3 events will run.').waitFor();
    await confirm(page);
    await page.getByText('Redrive of 3 deliveries of 3 events started.').waitFor();
    await page.getByText('1 failed delivery: 1 dead, 0 retrying.').waitFor();
    await app.settled('evt_1');
    expect(await app.states('evt_1')).toMatchObject({ 'Orders.markPaid': 'done' });
    expect(await app.states('evt_4')).toMatchObject({ 'Orders.markPaid': 'dead' });
  });

  it('OP-41 the console shows an acknowledged group of failures with its note below the other groups, and moves it up again when the group changes', async () => {
    await using app = await broken();
    const page = await app.open(browser(), 'failures');
    await page.getByRole('button', { name: /^Acknowledge … .*HTTP 503/ }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.innerText()).toMatch(
      /3 deliveries, handler Orders\.markPaid, with the error/,
    );
    await dialog.getByLabel('Note').fill(' the ledger team <b>knows</b> ');
    await confirm(page);
    await page.getByText('The group is acknowledged.').waitFor();
    await page.getByRole('heading', { name: 'Acknowledged' }).waitFor();
    const rows = page.locator('.failures tbody tr');
    const [open, known] = await rows.allInnerTexts();
    expect(open).not.toContain('HTTP 503');
    expect(known).toMatch(/HTTP 503[^]*Acknowledged by ada .*: the ledger team <b>knows<\/b>/);
    expect(known).not.toContain('changed');

    app.handlers.trouble = 'HTTP 503 from ledger, request a1b2c3d9';
    await app.receive({ id: 'evt_9' });
    await page.getByRole('heading', { name: 'Acknowledged' }).waitFor({ state: 'detached' });
    expect((await rows.allInnerTexts())[0]).toMatch(
      /HTTP 503[^]*changed[^]*Acknowledged by ada .*: the ledger team/,
    );
    await page.getByRole('button', { name: /^Withdraw … .*HTTP 503/ }).click();
    await confirm(page);
    await page.getByText('The note is withdrawn.').waitFor();
    await page.getByText('Acknowledged by ada').waitFor({ state: 'detached' });
    await page.goto(`${app.url}#/audit`);
    for (const text of ['acknowledged 3 deliveries', 'withdrew the note on 4 deliveries']) {
      await page.getByText(`${text} of handler "Orders.markPaid" with the error`).waitFor();
    }
  });

  it('the console shows a message if there are no failures', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser(), 'failures');
    await page.getByText('No failed delivery.').waitFor();
  });
});

describeInBrowser('the list of events in the inbox console', (browser) => {
  const PAYMENT = {
    transactionId: '5a9264b3-9d2f-4a25-8d5e-65e5aed60000',
    externalReference: 'ORDER-1039',
    amount: '12500.5',
    currency: 'KES',
  };

  it('a row of the list of events shows reference, amount, transaction and the time of receipt with its time zone', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1', data: PAYMENT });
    const page = await app.open(browser(), 'events', { timezoneId: 'Africa/Nairobi' });
    const row = page.getByRole('row', { name: /evt_1/ });
    const text = (await row.innerText()).replace(/\s+/g, ' ');
    expect(text).toMatch(/ORDER-1039 5a9264b3-9…aed60000 KES 12,500\.50 /);
    expect(text).toMatch(/\d\d:\d\d:\d\d GMT\+3$/);
    const id = row.locator('.payment .id');
    expect(await id.getAttribute('title')).toBe(PAYMENT.transactionId);
    expect(await row.locator('.when time').getAttribute('title')).toMatch(/^(now|\d.* ago), /);
    await row.locator('.payment a').click();
    await eventually(() =>
      expect(page.url()).toContain(`#/payment/default/${PAYMENT.transactionId}`),
    );
  });

  it('the page of an event shows reference, amount, transaction and trace id', async () => {
    await using app = await ConsoleApplication.start();
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await app.send(webhookRequest({ id: 'evt_1', data: PAYMENT }), {
      traceparent: `00-${trace}-00f067aa0ba902b7-01`,
    });
    const page = await app.open(browser(), 'events/default/evt_1');
    const facts = (await page.locator('.facts').innerText()).replace(/\s+/g, ' ');
    expect(facts).toMatch(/Reference ORDER-1039 Amount KES 12,500\.50 Transaction 5a9264b3-9d2f-/);
    expect(facts).toContain(`Trace id ${trace}`);
    expect(await page.getByText('Ordering key').count()).toBe(0);
    await page.goto(`${app.url}#/events/default/evt_9`);
    await page.getByText('No such event.').waitFor();
  });

  it('the filter of the list of events is in the address, and remains after a reload and the back button', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive(
      { id: 'evt_1', data: PAYMENT },
      { id: 'evt_2', data: { transactionId: 't' } },
    );
    const page = await app.open(browser(), 'events');
    const rows = page.locator('.events tbody tr');
    await rows.nth(1).waitFor();
    const field = page.locator('.filters [name=search]');
    await page.locator('.filters summary').click();
    await field.fill('ORDER-1');
    await page.keyboard.press('Enter');
    await page.getByText('1 event on this page').waitFor();
    await page.reload();
    await page.getByText('1 event on this page').waitFor();
    expect(await field.inputValue()).toBe('ORDER-1');
    await page.locator('.filters summary').click();
    await field.fill(`%_\\'"<b>&🔑#?=\ud800`);
    await page.keyboard.press('Enter');
    await page.getByText('No event matches.').waitFor();
    await page.goBack();
    await page.getByText('1 event on this page').waitFor();
    await page.goBack();
    await rows.nth(1).waitFor();
    expect(await field.inputValue()).toBe('');
  });
});

const EVENT = 'events/default/evt_1';

describeInBrowser('times in the inbox console', (browser) => {
  it('if the operator does not change the time in a filter, the time keeps its milliseconds, and its hour in the night when clocks go back', async () => {
    await using app = await ConsoleApplication.start();
    const [from, to] = ['2026-10-25T01:30:15.250Z', '2026-10-25T02:30:00.001Z'];
    const place = `events?${new URLSearchParams({ from, to })}`;
    const page = await app.open(browser(), place, { timezoneId: 'Europe/Berlin' });
    await page.getByText('No event matches.').waitFor();
    const params = () => new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
    await page.locator('summary').click();
    await page.locator('.filters [name=search]').fill('evt');
    await page.keyboard.press('Enter');
    await eventually(() =>
      expect(Object.fromEntries(params())).toEqual({ search: 'evt', from, to }),
    );
    await page.getByLabel('Received from').fill('2026-10-24T12:00:00');
    await page.keyboard.press('Tab');
    await eventually(() => expect(params().get('from')).toBe('2026-10-24T10:00:00.000Z'));
    expect(params().get('to')).toBe(to);
  });

  it('the console shows when a delivery is due, and shows the remaining time only if this time is longer than usual clock differences', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser(), '', { timezoneId: 'UTC' });
    let inMs = 0;
    await changed(page, 'event', (event) => ({
      ...event,
      deliveries: event.deliveries.map((delivery) => ({
        ...delivery,
        state: 'pending',
        finishedAt: null,
        dueAt: new Date(Date.now() + inMs).toISOString(),
      })),
    }));
    const due = page.getByRole('article', { name: 'Orders.markPaid' }).locator('header .quiet');
    for (const [ms, text] of [
      [-2_000, /, due [^(]*\d\d:\d\d:\d\d UTC$/],
      [3_000, /, due [^(]*\d\d:\d\d:\d\d UTC$/],
      [630_000, /, due [^(]*\d\d:\d\d:\d\d UTC \(in about 10 min\)$/],
    ] as const) {
      inMs = ms;
      await page.goto(`${app.url}#/${EVENT}`);
      await page.reload();
      await due.waitFor();
      expect((await due.textContent())!.trim()).toMatch(text);
    }
  });

  it('the console shows one row per attempt, even if two attempts began at the same time', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    let attempts = 2;
    await changed(page, 'event', (event) => ({
      ...event,
      deliveries: event.deliveries.map((delivery) => ({
        ...delivery,
        history: Array.from({ length: attempts }, (_, index) => ({
          ...delivery.history[0],
          attempt: index + 1,
          startedAt: '2026-01-01T00:00:00.000Z',
        })),
      })),
    }));
    await page.goto(`${app.url}#/${EVENT}`);
    const rows = page.getByRole('article', { name: 'Orders.markPaid' }).locator('tbody tr');
    await rows.nth(1).waitFor();
    await rows.nth(1).evaluate((row) => row.setAttribute('data-first', ''));
    attempts = 3;
    await rows.nth(2).waitFor();
    expect(await rows.nth(0).getAttribute('data-first')).toBeNull();
    expect(await rows.nth(2).getAttribute('data-first')).toBe('');
    expect(await rows.nth(2).locator('.attempt').textContent()).toBe('1');
  });
});

describeInBrowser('the plots of the inbox console', (browser) => {
  let app: ConsoleApplication;
  beforeAll(async () => {
    app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
  });
  afterAll(() => app?.[Symbol.asyncDispose]());

  it('the console repaints the plots if the color scheme changes, and describes the plots as text and as a table', async () => {
    const page = await app.open(browser(), '', { colorScheme: 'light' });
    await closedMinutes(page, (place) => (place === 5 ? { received: 1, done: 2 } : {}));
    await page.reload();
    const plot = page.getByRole('img', {
      name: /^Deliveries per minute: done at most 2, dead at most 0. last hour: 2 done, 0 dead/,
    });
    await plot.waitFor();
    // From now on, only a change of the color scheme repaints the plots.
    app.session.open = false;
    await page.getByText('You are not signed in any more.').waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await eventually(async () => expect(await isPaintedIn(page, 'i.received')).toBe(true));
    }
    await page.getByText('As a table').nth(1).click();
    expect(await page.locator('figure table').first().textContent()).toContain('dead');
    app.session.open = true;
  });

  it('the plots of a day have one point per 15 minutes, with the mean of the counts and the times of the slowest minute', async () => {
    const page = await app.open(browser(), '?minutes=1440');
    await closedMinutes(page, () => ({}));
    await page.reload();
    await page.getByText('Events per minute, means of 15 minutes').waitFor();
    // The data start at 00:01, so that the first quarter has 14 minutes.
    const points = await page.evaluate<Record<string, unknown>[]>(`(async () => {
      const { grouped } = await import(document.baseURI.replace(/#.*/, '') + 'assets/activity.js');
      return grouped(Array.from({ length: 1440 }, (_, index) => ({
        startsAt: new Date(Date.UTC(2026, 0, 1, 0, index + 1)).toISOString(),
        received: index < 14 ? 2 : index === 14 ? 30 : 0, done: 0, failed: 0, dead: 0,
        p50Ms: null, p95Ms: index < 14 ? index : null,
      })));
    })()`);
    expect(points).toHaveLength(97);
    expect(points[0]).toMatchObject({
      startsAt: '2026-01-01T00:00:00.000Z',
      received: 2,
      p95Ms: 13,
    });
    expect(points[1]).toMatchObject({
      startsAt: '2026-01-01T00:15:00.000Z',
      received: 2,
      p95Ms: null,
    });
  });

  it('each plot of the console has one unit, and shows the totals of the range, and which minutes are not counted yet', async () => {
    const page = await app.open(browser());
    await closedMinutes(
      page,
      (place) => ({
        received: place < 10 ? 3 : 0,
        done: place < 10 ? 6 : 0,
        failed: place === 20 ? 4 : 0,
        dead: place === 20 ? 1 : 0,
        p50Ms: place === 30 ? 20 : null,
        p95Ms: place === 40 ? 9000 : null,
      }),
      () => ({
        range: {
          events: { webhook: 20, poll: 10, test: 0, overdue: 0 },
          // The percentiles of the range are not those of the slowest minute.
          deliveries: { ...NO_DELIVERIES, done: 60, p50Ms: 20, p95Ms: 5000 },
        },
      }),
    );
    await page.reload();
    await page.locator('figure').first().waitFor();
    expect(await page.locator('figcaption').allInnerTexts()).toEqual([
      expect.stringMatching(/^Events per minute\s+last hour: 30 received$/),
      expect.stringMatching(/^Deliveries per minute\s+last hour: 60 done, 1 dead$/),
      expect.stringMatching(/^Failed attempts per minute\s+last hour: 4 failed$/),
      expect.stringMatching(/^Time from receipt to done\s+last hour: p95 5 s, p50 20 ms$/),
    ]);
    await page.getByRole('button', { name: '15 min' }).click();
    await page.getByText('last 15 min: 0 failed').waitFor();
    await page.reload();
    await page.getByText('last 15 min: 30 received').waitFor();
    expect(await page.getByText('not counted yet', { exact: true }).count()).toBe(4);
  });

  it('the overview of the console shows the age of the counts of the range from one minute on', async () => {
    let countedAt = '2026-11-20T08:19:00.001Z';
    const page = await app.open(browser());
    await changed(page, 'overview', (overview) => ({
      ...overview,
      now: '2026-11-20T08:20:00.000Z',
      range: { ...(overview['range'] as object), countedAt },
    }));
    await page.reload();
    await page.getByText('received in the last hour', { exact: true }).waitFor();
    countedAt = '2026-11-20T08:17:00.000Z';
    await page.getByText('received in the last hour, counted 3 min ago', { exact: true }).waitFor();
  });

  it('the plots of the console show the time after the last closed minute as a hatched area without a line', async () => {
    const page = await app.open(browser(), '?minutes=15');
    await changed(page, 'overview', (overview) => ({
      ...overview,
      now: '2026-11-20T08:20:00.000Z',
      completeFrom: '2026-11-20T08:00:00.000Z',
      activity: Array.from({ length: 15 }, (_, minute) => ({
        startsAt: new Date(Date.UTC(2026, 10, 20, 8, minute)).toISOString(),
        received: 5,
        done: 0,
        failed: 0,
        dead: 0,
        p50Ms: null,
        p95Ms: null,
      })),
    }));
    await page.reload();
    await page.locator('figure').first().waitFor();
    /** Share of the pixels between two columns that have the colour of an element of the key. */
    const share = (element: string, from: number, to: number) =>
      page.evaluate<number>(`(() => {
        const canvas = document.querySelector('canvas');
        const [left, top] = [${from} * canvas.width, 0.1 * canvas.height];
        const [width, height] = [${to - from} * canvas.width, 0.5 * canvas.height];
        const { data } = canvas.getContext('2d').getImageData(left, top, width, height);
        const { color } = getComputedStyle(document.querySelector('.key ${element}'));
        const wanted = color.match(/\\d+/g).map(Number);
        const pixels = Array.from({ length: data.length / 4 }, (_, at) => at * 4);
        return pixels.filter((at) => data[at + 3] > 0 &&
          wanted.every((part, index) => Math.abs(data[at + index] - part) < 3)).length / pixels.length;
      })()`);
    // 15 of the 20 minutes on the axis are closed.
    await eventually(async () => expect(await share('i.received', 0.3, 0.7)).toBeGreaterThan(0));
    expect(await share('i.received', 0.8, 0.95)).toBe(0);
    // The grid has about 2% of the pixels.
    expect(await share('.at', 0.8, 0.95)).toBeGreaterThan(0.1);
    expect(await share('.at', 0.3, 0.7)).toBeLessThan(0.01);
  });

  it('the console plots a single minute in a narrow plot', async () => {
    const page = await app.open(browser(), '', { viewport: { width: 390, height: 844 } });
    await closedMinutes(page, (place) => ({ p95Ms: place === 30 ? 40 : null }));
    await page.reload();
    await page
      .getByRole('img', { name: /^Time from receipt to done: p95 at most 40 ms/ })
      .waitFor();
    const painted = () =>
      page.evaluate<number>(`(() => {
        const canvas = document.querySelectorAll('canvas')[3];
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const wanted = getComputedStyle(document.querySelector('i.p95Ms')).color.match(/\\d+/g);
        return Array.from({ length: data.length / 4 }, (_, at) => at * 4).filter((at) =>
          wanted.slice(0, 3).every((part, index) => data[at + index] === Number(part))).length;
      })()`);
    await eventually(async () => expect(await painted()).toBeGreaterThan(0));
  });

  it('IN-38 the console shows when the last closed minute ended, and since when the counts are complete', async () => {
    const page = await app.open(browser());
    let completeFrom = '2026-11-20T08:00:00.000Z';
    const none = { received: 0, done: 0, failed: 0, dead: 0, p50Ms: null, p95Ms: null };
    await changed(page, 'overview', (overview) => ({
      ...overview,
      now: '2026-11-20T08:02:10.000Z',
      activity: ['00', '01'].map((minute) => ({
        startsAt: `2026-11-20T08:${minute}:00.000Z`,
        ...none,
      })),
      completeFrom,
    }));
    for (const [from, text, figure] of [
      [
        '08:00',
        /^Closed minutes until [^.]*\. Later minutes are not counted yet\. The plots count a delivery when it ends; [^.]*\.$/,
        'last hour',
      ],
      [
        '08:01',
        /in this time\. Complete from .* 08:01:00 UTC\. For earlier minutes, only stored events among the 100,000 newest/,
        'last hour, incomplete',
      ],
    ] as const) {
      completeFrom = `2026-11-20T${from}:00.000Z`;
      await page.reload();
      const note = page.getByText('Closed minutes until');
      await note.waitFor();
      expect((await note.textContent())!.trim().replaceAll(/\s+/g, ' ')).toMatch(text);
      await page.getByText(`0 test; ${figure}`).waitFor();
    }
  });
});
