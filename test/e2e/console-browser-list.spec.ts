import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { ConsoleApplication } from '../support/console/console-browser.js';

/** Responds to requests for events as a store with many events: the first `empty` responses have none, and a `next`. */
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
  it('the console continues after empty responses until it finds the event', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    const requested = await delayed(page, 3);
    await page.goto(`${app.url}#/events?company=default`);
    await page.getByRole('link', { name: 'evt_1' }).waitFor();
    expect(requested.slice(0, 4)).toEqual(['0', '1', '2', '3']);
    expect(await page.getByRole('link', { name: 'Search older events' }).count()).toBe(0);
  });

  it('the console stops after 25 empty responses, and continues on request', async () => {
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
