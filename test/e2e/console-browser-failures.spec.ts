import { expect, it } from '@jest/globals';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { ConsoleApplication, confirm, countedDialog } from '../support/console/console-browser.js';
import { eventually } from '../support/time/waiting.js';
import { webhookRequest } from '../support/webhook/handler-application.js';

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
  it('the console groups failures with their number of deliveries, and links to the list and an example', async () => {
    await using app = await broken();
    const page = await app.open(browser());
    await page.getByRole('link', { name: '4 dead', exact: true }).first().click();
    await page.getByText('4 failed deliveries: 4 dead, 0 retrying.').waitFor();
    const group = page.getByRole('row', { name: /HTTP 503 from ledger/ });
    expect((await group.innerText()).replace(/\s+/g, ' ')).toMatch(
      /HTTP 503 from ledger, request a1b2c3d3 Orders\.markPaid dead × 3 Oldest \d\d:\d\d:\d\d \S+ Newest \d\d:\d\d:\d\d \S+ evt_3 Redrive …/,
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
    await page.getByText('3 deliveries of 3 events redriven.').waitFor();
    await page.getByText('1 failed delivery: 1 dead, 0 retrying.').waitFor();
    await app.settled('evt_1');
    expect(await app.states('evt_1')).toMatchObject({ 'Orders.markPaid': 'done' });
    expect(await app.states('evt_4')).toMatchObject({ 'Orders.markPaid': 'dead' });
  });

  it('the console says that there are no failures', async () => {
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

  it('a row shows reference, amount, transaction and the time of receipt with its zone', async () => {
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
    await eventually(() => expect(page.url()).toContain(`search=${PAYMENT.transactionId}`));
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

  it('a search is in the address, and survives a reload and the back button', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive(
      { id: 'evt_1', data: PAYMENT },
      { id: 'evt_2', data: { transactionId: 't' } },
    );
    const page = await app.open(browser(), 'events');
    const rows = page.locator('.events tbody tr');
    await rows.nth(1).waitFor();
    await page.locator('#search').fill('ORDER-1');
    await page.keyboard.press('Enter');
    await page.getByText('1 event on this page').waitFor();
    await page.reload();
    await page.getByText('1 event on this page').waitFor();
    expect(await page.locator('#search').inputValue()).toBe('ORDER-1');
    await page.locator('#search').fill(`%_\\'"<b>&🔑#?=\ud800`);
    await page.keyboard.press('Enter');
    await page.getByText('No event matches.').waitFor();
    await page.goBack();
    await page.getByText('1 event on this page').waitFor();
    await page.goBack();
    await rows.nth(1).waitFor();
    expect(await page.locator('#search').inputValue()).toBe('');
  });
});
