import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import {
  seriousViolations,
  seriousViolationsEverywhere,
} from '../support/browser/accessibility.js';
import { brightness, weakTextsUnderPointer, widthOf } from '../support/browser/page-appearance.js';
import { describeInBrowser } from '../support/browser/test-browser.js';
import {
  closedMinutes,
  ConsoleApplication,
  countedDialog,
} from '../support/console/console-browser.js';
import { expectationsOf, TransactionService } from '../support/console/expecting-application.js';

const LONG = 'x'.repeat(200);

/** The pages of the console: address, and an element that shows that it is complete. */
const PAGES = [
  ['', 'figure canvas'],
  ['events', '.events'],
  ['events?state=running', '.empty'],
  ['events/default/evt_1', '.payload'],
  ['failures', '.failures'],
  ['expectations', '.expectations'],
  ['processes', '.plain'],
  ['audit', '.audit'],
  ['setup', '.checks[aria-busy=false]'],
  ['nonsense', '.empty'],
] as const;

/** Nothing is wider than the window, and all texts are readable, also under the pointer. */
async function expectNoViolation(page: Page, place = page.url()): Promise<void> {
  expect([place, await seriousViolationsEverywhere(page)]).toEqual([place, []]);
  for (const width of [390, 820, 1280]) {
    await page.setViewportSize({ width, height: 844 });
    expect([place, await widthOf(page)]).toEqual([place, width]);
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const at = `${place}, ${colorScheme}`;
    expect([at, await weakTextsUnderPointer(page)]).toEqual([at, []]);
    expect([at, (await brightness(page)) > 0.5]).toEqual([at, colorScheme === 'light']);
  }
}

describeInBrowser('axe-core on the pages of the inbox console', (browser) => {
  let service: TransactionService;
  let app: ConsoleApplication;

  // Events in many states, an expectation, a paused handler and an audit trail.
  beforeAll(async () => {
    service = await TransactionService.start();
    app = await ConsoleApplication.start(service.options);
    app.handlers.trouble = 'the ledger is closed';
    await app.receive({ id: 'evt_1', data: { transactionId: LONG, note: LONG } }, { id: LONG });
    app.handlers.trouble = null;
    await app.receive({ id: 'evt_3' }, { id: 'evt_4', eventType: 'payout.settled' });
    await expectationsOf(app).expect({ reference: 'order-1' });
    await app.inbox.pause('Mailer.receipt');
  });
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  /** Opens a page whose overview has minutes with events, a late service, and a handler that runs elsewhere. */
  async function openConsole() {
    const page = await app.open(browser(), `events/default/${LONG}`);
    await page.locator('.payload').waitFor();
    await closedMinutes(
      page,
      (index) => ({ received: index % 5, done: 3, p50Ms: 12, p95Ms: 80 }),
      ({ handlers, now, arrivals }) => ({
        handlers: [...handlers, { ...handlers[0], name: LONG, here: false }],
        arrivals: { ...(arrivals as object), poll: now, usualGapMs: 30_000, late: true },
      }),
    );
    const open = async (place: string, shown: string) => {
      await page.goto(`${app.url}#/${place}`);
      await page.reload();
      await page.locator(shown).first().waitFor();
    };
    return { page, open };
  }

  it('axe-core finds no serious violation on the pages of the console, and the pages fit three screen widths', async () => {
    const { page, open } = await openConsole();
    for (const [place, shown] of PAGES) {
      await open(place, shown);
      await expectNoViolation(page, place);
    }
  });

  it('axe-core finds no serious violation on the overview of the console while the table of a plot is open', async () => {
    const { page, open } = await openConsole();
    await open('', 'figure canvas');
    await page.getByText('As a table').first().click();
    await page.locator('figure table').waitFor();
    await expectNoViolation(page);
  });

  it('axe-core finds no serious violation in the dialogs of the console, and the dialogs fit three screen widths', async () => {
    const { page, open } = await openConsole();
    await open('events/default/evt_1', '.payload');
    await page.getByRole('button', { name: /^Redrive/ }).click();
    await countedDialog(page);
    await expectNoViolation(page);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await expectNoViolation(page);
  });

  it('axe-core finds a violation that is added to a console page', async () => {
    const { page, open } = await openConsole();
    await open('audit', '.audit');
    await page.evaluate(`document.querySelector('main').append(
      Object.assign(document.createElement('img'), { src: 'assets/icon.svg' }))`);
    expect(await seriousViolations(page)).toEqual([expect.stringMatching(/^image-alt: /)]);
  });
});
