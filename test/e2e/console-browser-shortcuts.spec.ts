import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { arrived, describeInBrowser } from '../support/browser/test-browser.js';
import { isFocused } from '../support/browser/page-appearance.js';
import { ConsoleApplication, changed } from '../support/console/console-browser.js';
import { eventually } from '../support/time/waiting.js';

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
  it('the console opens its pages with g and a letter', async () => {
    await using console = await start(browser);
    const { page } = console;
    for (const [key, heading] of [
      ['e', 'Events'],
      ['f', 'Failures'],
      ['x', 'Expectations'],
      ['a', 'Audit'],
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

  it('the console sets the focus to the search with /, also from a page without a search', async () => {
    await using console = await start(browser);
    const { page } = console;
    await page.keyboard.press('/');
    await arrived(page, /#\/events$/);
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

  it('the console moves through rows without a link', async () => {
    await using console = await start(browser, 'audit');
    const { page } = console;
    const entry = { at: '2026-11-20T08:00:00.000Z', who: 'ann', action: 'pause', event: null };
    await changed(page, 'audit', (body) => ({
      ...body,
      entries: [2, 1].map((id) => ({ ...entry, id, target: `no. ${id}`, result: {}, error: null })),
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

  it.each(['nonsense', 'events/default', 'events/default/evt_1/more', '%E0%A4%A', 'audit/1'])(
    'the console says that it has no page #/%s, and links to the overview',
    async (place) => {
      await using console = await start(browser, place);
      const { page } = console;
      await page.getByRole('heading', { level: 1, name: 'Unknown address' }).waitFor();
      expect(await page.title()).toBe('Unknown address · Payments inbox');
      await page.getByText(`#/${place}`).waitFor();
      await page.reload();
      await page.getByRole('link', { name: 'Go to the overview' }).click();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    },
  );
});
