import { expect, it } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import {
  clipboardOf,
  isFocused,
  outlineOf,
  setHidden,
} from '../../support/browser/page-appearance.js';
import {
  arrived,
  describeInBrowser,
  tabTo as pressTabTo,
} from '../../support/browser/test-browser.js';
import {
  ConsoleApplication,
  OPERATOR,
  changed,
  countedDialog,
} from '../../support/console/console-browser.js';
import { TcpProxy } from '../../chaos/tcp-proxy.ts';
import { eventually } from '../../support/time/waiting.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { SECRET } from '../../support/webhook/webhook-application.js';

const EVENT = 'events/default/evt_1';

/** After a navigation, the page sets the focus to its heading one frame later. */
const headingFocused = (page: Page) =>
  eventually(async () => expect(await isFocused(page.locator('h1'))).toBe(true));

/** Presses Tab until the element has the focus. The focus must be visible. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await pressTabTo(page, target);
  expect(await outlineOf(target)).not.toBe('none');
}

describeInBrowser('accessibility of the inbox console', (browser) => {
  it('an operator can search, open and redrive an event in the console with the keyboard only', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = 'the ledger is closed';
    await app.receive(
      { id: 'evt_1', data: { transactionId: 't-1', externalReference: 'order-1' } },
      { id: 'evt_2', data: { transactionId: 't-2', externalReference: 'order-2' } },
    );
    app.handlers.trouble = null;
    const page = await app.open(browser());
    await page.locator('.counts').waitFor();
    const { keyboard } = page;
    await tabTo(page, page.getByLabel(/^Search/));
    await keyboard.type('ORDER');
    await keyboard.press('Enter');
    await eventually(async () => expect(await page.locator('.payments tbody tr').count()).toBe(2));
    await headingFocused(page);
    await tabTo(page, page.getByRole('link', { name: 'order-2' }));
    await keyboard.press('Enter');
    const redrive = page.getByRole('button', { name: 'Redrive … Orders.markPaid' });
    await redrive.waitFor();
    await headingFocused(page);
    await tabTo(page, redrive);
    await keyboard.press('Enter');
    await tabTo(page, (await countedDialog(page)).locator('button[type=submit]'));
    await keyboard.press('Enter');
    await page.getByText('1 delivery of 1 event redriven.').waitFor();
    await eventually(async () =>
      expect((await app.states('evt_2'))['Orders.markPaid']).toBe('done'),
    );
    expect((await app.states('evt_1'))['Orders.markPaid']).toBe('dead');
  });

  it('the console shows since when the server is not reachable, and continues when the server is reachable again', async () => {
    await using app = await ConsoleApplication.start();
    const [proxy, url] = await TcpProxy.before(app.url);
    await using _ = proxy;
    const page = await app.open(browser(), '', { at: url });
    await page.getByText('No event received yet.').waitFor();
    await page.evaluate(() => Object.assign(globalThis, { loadedOnce: true }));
    await proxy.close();
    const gone = page.getByText(/Not reachable since \d\d:\d\d:\d\d\./);
    const since = await gone.textContent();
    await page.getByRole('button', { name: '6 h' }).click();
    await eventually(() => expect(page.url()).toContain('minutes=360'));
    expect(await gone.textContent()).toBe(since);
    await app.receive({ id: 'evt_1' });
    await proxy.open();
    await page.locator('.newest time').first().waitFor();
    await page.getByText('Not reachable').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => 'loadedOnce' in globalThis)).toBe(true);
  });

  it('the console sends no request while its page is hidden, and sends a request as soon as the page is visible', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await page.clock.install();
    await page.reload();
    await page.getByText('No event received yet.').waitFor();
    await setHidden(page, true);
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    await page.clock.runFor(60_000);
    expect(requested).toEqual([]);
    await app.receive({ id: 'evt_1' });
    await setHidden(page, false);
    await page.locator('.newest time').first().waitFor();
  });

  it('the console works if its address contains a name and a password', async () => {
    await using app = await ConsoleApplication.start();
    const page = await browser().page();
    const { username, password } = OPERATOR;
    await page.goto(Object.assign(new URL(app.url), { username, password }).href);
    await page.getByText('No event received yet.').waitFor();
  });

  it('the console keeps the page of the list in the address, so that reload, back and forward work', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive(...Array.from({ length: 51 }, (_, index) => ({ id: `evt_${index}` })));
    const page = await app.open(browser(), 'events?order=oldest');
    await page.getByRole('link', { name: 'evt_0', exact: false }).first().waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'evt_50' }).waitFor();
    expect(await page.locator('.events tbody tr').count()).toBe(1);
    await headingFocused(page);
    await page.reload();
    await page.getByRole('link', { name: 'evt_50' }).waitFor();
    await page.goBack();
    await page.getByText('50 events on this page').waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'Previous page' }).click();
    await page.getByText('50 events on this page').waitFor();
    expect(page.url()).not.toContain('after');
  });

  it('the console shows all digits of a payload, the beginning of a long payload, and copies the received text', async () => {
    await using app = await ConsoleApplication.start();
    const permissions = ['clipboard-read', 'clipboard-write'];
    const body = (note: string) =>
      `{"id":"..","eventType":"webhook.test","timestamp":"2026-11-20T08:00:00.000Z",  "data":{"amount":12345678901234567890.10,"note":"${note}","note":"${note}"},"metadata":{}}`;
    const raw = body('é'.repeat(15_000));
    await app.send(signedWebhook({ webhookSecret: SECRET }, raw));
    await app.settled('..');
    const page = await app.open(browser(), 'events', { permissions });
    await page.getByRole('link', { name: 'webhook.test' }).click();
    const payload = page.locator('.payload');
    await payload.waitFor();
    expect(await payload.textContent()).toContain('\n    "amount": 12345678901234567890.10,\n');
    expect((await payload.textContent())!.length).toBe(20_000);
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: 'as received' }).click();
    await eventually(async () => expect(await payload.textContent()).toBe(raw));
    await page.getByRole('button', { name: 'Copy payload' }).click();
    await page.getByText('copied').waitFor();
    expect(await clipboardOf(page)).toBe(raw);
  });

  it('SE-11 the console shows the reason why a body cannot be decoded, and redrives its deliveries', async () => {
    const key = { missing: false };
    await using app = await ConsoleApplication.start({
      bodyCodec: {
        encode: (body) => body,
        decode: (stored) => {
          if (key.missing) throw new Error('the key <b>2026-11</b> is missing');
          return stored;
        },
      },
    });
    await app.receive({ id: 'evt_1' });
    key.missing = true;
    const page = await app.open(browser(), EVENT);
    const payload = page.getByRole('region', { name: 'Payload' });
    await payload.getByText('cannot be decoded').waitFor();
    expect(await payload.textContent()).toContain('the key <b>2026-11</b> is missing');
    expect(await page.getByRole('button', { name: /^Run again/ }).count()).toBe(2);
  });
});

/** Waits until the element with the focus is the one of the selector. */
const focused = (page: Page, selector: string) =>
  eventually(async () => expect(await isFocused(page.locator(selector).first())).toBe(true));

/** Text of the table row with the focus; empty if there is none. */
const row = (page: Page) =>
  page.evaluate<string>(`document.activeElement.closest('tbody tr')?.textContent ?? ''`);

async function start(browser: () => Parameters<ConsoleApplication['open']>[0], place = '') {
  const app = await ConsoleApplication.start();
  await app.receive({ id: 'evt_1' }, { id: 'evt_2' }, { id: 'evt_3' });
  const page = await app.open(browser(), place);
  await page.locator('h1').waitFor();
  return { app, page, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
}

describeInBrowser('keyboard shortcuts of the inbox console', (browser) => {
  it('the console opens its pages with the key g and a letter', async () => {
    await using console = await start(browser);
    const { page } = console;
    for (const [key, heading] of [
      ['e', 'Events'],
      ['f', 'Failures'],
      ['x', 'Expectations'],
      ['a', 'Audit'],
      ['s', 'Setup'],
      ['o', 'Overview'],
    ] as const) {
      await page.keyboard.type(`g${key}`);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
      await focused(page, 'h1');
    }
    await page.keyboard.press('e');
    await page.keyboard.press('Control+g');
    await page.keyboard.press('e');
    expect(await page.evaluate('location.hash')).toBe('#/');
  });

  it('the console sets the focus to the search with the key /', async () => {
    await using console = await start(browser);
    const { page } = console;
    await page.keyboard.press('/');
    await focused(page, '#search');
    await page.keyboard.type('ge?/jk');
    expect(await page.locator('#search').inputValue()).toBe('ge?/jk');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.locator('h1').focus();
    await page.keyboard.press('/');
    await focused(page, '#search');
  });

  it('the console moves from row to row with j and k, and opens a row with Enter', async () => {
    await using console = await start(browser, 'events');
    const { page } = console;
    await page.getByRole('link', { name: 'evt_3' }).waitFor();
    await page.keyboard.press('k');
    expect(await row(page)).toBe('');
    await page.keyboard.press('j');
    expect(await row(page)).toContain('evt_3');
    await page.keyboard.type('jjj');
    expect(await row(page)).toContain('evt_1');
    await page.keyboard.press('k');
    expect(await row(page)).toContain('evt_2');
    await page.keyboard.press('Enter');
    await arrived(page, /#\/events\/default\/evt_2$/);
  });

  it('the console moves with j and k through rows that have no link, and Enter opens nothing there', async () => {
    await using console = await start(browser, 'audit');
    const { page } = console;
    const entry = { at: '2026-11-20T08:00:00.000Z', who: 'ann', event: null, error: null };
    await changed(page, 'audit', (body) => ({
      ...body,
      entries: [2, 1].map((id) => ({ ...entry, id, text: `no. ${id}` })),
    }));
    await page.reload();
    await page.getByText('no. 1').waitFor();
    await page.keyboard.type('jj');
    expect(await row(page)).toContain('no. 1');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('location.hash')).toBe('#/audit');
  });

  it('the console shows its shortcuts in a dialog, which Esc closes', async () => {
    await using console = await start(browser, 'events');
    const { page } = console;
    await page.getByRole('link', { name: 'Events', exact: true }).focus();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await help.waitFor();
    expect(await help.innerText()).toMatch(/g\s+then\s+f\s+Failures/);
    await page.keyboard.type('ga');
    expect(await page.evaluate('location.hash')).toBe('#/events');
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
    await focused(page, 'nav a[href="#/events"]');
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
    await help.getByRole('button', { name: 'Close' }).click();
    await help.waitFor({ state: 'detached' });
  });

  it('the console ignores shortcuts if the operator switches them off in the browser', async () => {
    await using console = await start(browser);
    const { page } = console;
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    const toggle = async () => {
      await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
      await help.getByRole('checkbox').click();
      await page.keyboard.press('Escape');
      await help.waitFor({ state: 'detached' });
    };
    await toggle();
    await page.reload();
    await page.locator('h1').waitFor();
    await page.keyboard.type('ge?');
    expect(await help.count()).toBe(0);
    expect(await page.evaluate('location.hash')).toBe('#/');
    await toggle();
    await page.keyboard.type('ge');
    await arrived(page, /#\/events$/);
  });

  it('the console shows a message for an unknown address, with a link to the overview', async () => {
    await using console = await start(browser, 'nonsense');
    const { page } = console;
    for (const place of [
      'nonsense',
      'events/default',
      'events/default/evt_1/more',
      '%E0%A4%A',
      'audit/1',
    ]) {
      await page.evaluate(`location.hash = '#/${place}'`);
      await page.getByRole('heading', { level: 1, name: 'Unknown address' }).waitFor();
      await page.getByText(`#/${place}`).waitFor();
      await eventually(async () =>
        expect(await page.title()).toBe('Unknown address · Payments inbox'),
      );
      if (place === 'nonsense') {
        await page.reload();
        await page.getByText(`#/${place}`).waitFor();
      }
      await page.getByRole('link', { name: 'Go to the overview' }).click();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    }
  });
});
