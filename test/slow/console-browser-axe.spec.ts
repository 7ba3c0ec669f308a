import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import {
  seriousViolations,
  seriousViolationsEverywhere,
} from '../support/browser/accessibility.js';
import { widthOf } from '../support/browser/page-appearance.js';
import { describeInBrowser } from '../support/browser/test-browser.js';
import type { TestBrowser } from '../support/browser/test-browser.js';
import {
  closedMinutes,
  ConsoleApplication,
  countedDialog,
} from '../support/console/console-browser.js';
import { expectationsOf, TransactionService } from '../support/console/expecting-application.js';

const LONG = 'x'.repeat(200);

/** An application with events in many states, an expectation, a paused handler and an audit trail. */
async function start(browser: TestBrowser) {
  const service = await TransactionService.start();
  const app = await ConsoleApplication.start(service.options);
  app.handlers.trouble = 'the ledger is closed';
  await app.receive({ id: 'evt_1', data: { transactionId: LONG } }, { id: LONG });
  app.handlers.trouble = null;
  await app.receive({ id: 'evt_3' }, { id: 'evt_4', eventType: 'payout.settled' });
  await expectationsOf(app).expect({ reference: 'order-1' });
  await app.inbox.pause('Mailer.receipt');
  const page = await app.open(browser, `events/default/${LONG}`);
  await page.locator('.payload').waitFor();
  await closedMinutes(page, (index) => ({ received: index % 5, done: 3, p50Ms: 12, p95Ms: 80 }));
  const open = async (place: string, shown: string) => {
    await page.goto(`${app.url}#/${place}`);
    await page.reload();
    await page.locator(shown).first().waitFor();
  };
  const end = async () => {
    await app[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
  };
  return { page, open, [Symbol.asyncDispose]: end };
}

/** The pages of the console: address, and an element that shows that it is complete. */
const PAGES = [
  ['', 'figure canvas'],
  ['events', '.events'],
  ['events?state=running', '.empty'],
  ['events/default/evt_1', '.payload'],
  ['failures', '.failures'],
  ['expectations', '.expectations'],
  ['audit', '.audit'],
  ['nonsense', '.empty'],
] as const;

/** Checks the page at three widths: nothing is wider than the window. */
async function expectNoViolation(page: Page, place = page.url()): Promise<void> {
  expect([place, await seriousViolationsEverywhere(page)]).toEqual([place, []]);
  for (const width of [1280, 820, 390]) {
    await page.setViewportSize({ width, height: 844 });
    expect([place, await widthOf(page)]).toEqual([place, width]);
  }
}

describeInBrowser('axe-core on the pages of the inbox console', (browser) => {
  it('the pages of the console have no serious violation, and fit three widths', async () => {
    await using console = await start(browser());
    for (const [place, shown] of PAGES) {
      await console.open(place, shown);
      await expectNoViolation(console.page, place);
    }
  });

  it('the overview of the console has no serious violation with an open table of a plot', async () => {
    await using console = await start(browser());
    const { page } = console;
    await console.open('', 'figure canvas');
    await page.getByText('As a table').first().click();
    await page.locator('figure table').waitFor();
    await expectNoViolation(page);
  });

  it('the dialogs of the console have no serious violation, and fit three widths', async () => {
    await using console = await start(browser());
    const { page } = console;
    await console.open('events/default/evt_1', '.payload');
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
    await using console = await start(browser());
    const { page } = console;
    await console.open('audit', '.audit');
    await page.evaluate(`document.querySelector('main').append(
      Object.assign(document.createElement('img'), { src: 'assets/icon.svg' }))`);
    expect(await seriousViolations(page)).toEqual([expect.stringMatching(/^image-alt: /)]);
  });
});
