import { expect, it } from '@jest/globals';
import { signedWebhook } from '../support/webhook/signed-webhook.js';
import type { Locator, Page } from 'playwright-core';
import { describeInBrowser, tabTo as pressTabTo } from '../support/browser/test-browser.js';
import {
  ConsoleApplication,
  ClosableProxy,
  OPERATOR,
  countedDialog,
  changed,
} from '../support/console/console-browser.js';
import {
  brightness,
  clipboardOf,
  isFocused,
  outlineOf,
  setHidden,
  weakTexts,
  weakTextsUnderPointer,
  widthOf,
} from '../support/browser/page-appearance.js';
import { eventually } from '../support/time/waiting.js';
import { SECRET } from '../support/webhook/webhook-application.js';

const EVENT = 'events/default/evt_1';

/** After a navigation, the page sets the focus to its heading one frame later. */
const headingFocused = (page: Page) =>
  eventually(async () => expect(await isFocused(page.locator('h1'))).toBe(true));

/** Presses Tab until the element has the focus. The focus must be visible. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await pressTabTo(page, target);
  expect(await outlineOf(target)).not.toBe('none');
}

/** Opens each view of an inbox with events in many states. */
async function* views(app: ConsoleApplication, page: Page): AsyncGenerator<string> {
  app.handlers.trouble = 'the ledger is closed';
  const long = 'x'.repeat(200);
  await app.receive({ id: 'evt_1', data: { transactionId: long, note: long } }, { id: long });
  app.handlers.trouble = null;
  await app.receive({ id: 'evt_3' }, { id: 'evt_4', eventType: 'payout.settled' });
  await app.inbox.pause('Mailer.receipt');
  await changed(page, 'overview', (overview) => ({
    ...overview,
    handlers: [...overview.handlers, { ...overview.handlers[0], name: long, here: false }],
    newest: { webhook: overview.now, poll: null, overdue: null, usualGapMs: 30_000, late: true },
  }));
  for (const [place, shown] of [
    ['', '.elsewhere'],
    ['events', '.events'],
    [EVENT, '.payload'],
    ['events?state=running', '.empty'],
  ] as const) {
    await page.goto(`${app.url}#/${place}`);
    await page.locator(shown).first().waitFor();
    yield place;
  }
  await page.goto(`${app.url}#/${EVENT}`);
  await page.getByRole('button', { name: /^Redrive/ }).click();
  await countedDialog(page);
  yield 'dialog';
}

describeInBrowser('accessibility of the inbox console', (browser) => {
  it('the console can be used with the keyboard only: search, open an event, redrive it', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = 'the ledger is closed';
    await app.receive({ id: 'evt_1' }, { id: 'evt_2' });
    app.handlers.trouble = null;
    const page = await app.open(browser());
    await page.locator('.counts').waitFor();
    const { keyboard } = page;
    await tabTo(page, page.getByRole('link', { name: 'Events', exact: true }));
    await keyboard.press('Enter');
    await headingFocused(page);
    await tabTo(page, page.getByLabel(/^Search/));
    await keyboard.type('evt_2');
    await keyboard.press('Enter');
    await eventually(async () => expect(await page.locator('.events tbody tr').count()).toBe(1));
    await tabTo(page, page.getByRole('link', { name: 'evt_2' }));
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

  it('the console has views that fit the width of a phone', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser(), '', { viewport: { width: 390, height: 844 } });
    for await (const view of views(app, page)) {
      expect({ view, width: await widthOf(page) }).toEqual({ view, width: 390 });
    }
  });

  it.each(['light', 'dark'] as const)(
    'the console has readable contrast in the %s color scheme, also under the pointer',
    async (colorScheme) => {
      await using app = await ConsoleApplication.start();
      const page = await app.open(browser(), '', { colorScheme });
      for await (const view of views(app, page)) {
        expect({ view, weak: await weakTexts(page) }).toEqual({ view, weak: [] });
        expect({ view, weak: await weakTextsUnderPointer(page) }).toEqual({ view, weak: [] });
      }
      expect((await brightness(page)) > 0.5).toBe(colorScheme === 'light');
    },
  );

  it('the console shows since when the server is not reachable, and continues when it is reachable again', async () => {
    await using app = await ConsoleApplication.start();
    await using proxy = await ClosableProxy.before(app.url);
    const page = await app.open(browser(), '', { at: proxy.url });
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
    await page.locator('.newest time').waitFor();
    await page.getByText('Not reachable').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => 'loadedOnce' in globalThis)).toBe(true);
  });

  it('the console sends no request while the page is hidden, and one as soon as it is visible', async () => {
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
    await page.locator('.newest time').waitFor();
  });

  it('the console works if its address contains a name and a password', async () => {
    await using app = await ConsoleApplication.start();
    const page = await browser().page();
    const { username, password } = OPERATOR;
    await page.goto(Object.assign(new URL(app.url), { username, password }).href);
    await page.getByText('No event received yet.').waitFor();
  });

  it('the console keeps the page of the list in the address, for reload, back and forward', async () => {
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
