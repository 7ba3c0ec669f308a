import { expect, it } from '@jest/globals';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { ConsoleApplication, changed } from '../support/console/console-browser.js';
import { eventually } from '../support/time/waiting.js';

const EVENT = 'events/default/evt_1';

describeInBrowser('times in the inbox console', (browser) => {
  it('the console keeps an unchanged filter time exactly: its milliseconds, and its hour when clocks go back', async () => {
    await using app = await ConsoleApplication.start();
    const [from, to] = ['2026-10-25T01:30:15.250Z', '2026-10-25T02:30:00.001Z'];
    const place = `events?${new URLSearchParams({ from, to })}`;
    const page = await app.open(browser(), place, { timezoneId: 'Europe/Berlin' });
    await page.getByText('No event matches.').waitFor();
    const params = () => new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
    await page.getByLabel(/^Search/).fill('evt');
    await page.keyboard.press('Enter');
    await eventually(() =>
      expect(Object.fromEntries(params())).toEqual({ search: 'evt', from, to }),
    );
    await page.locator('summary').click();
    await page.getByLabel('Received from').fill('2026-10-24T12:00:00');
    await page.keyboard.press('Tab');
    await eventually(() => expect(params().get('from')).toBe('2026-10-24T10:00:00.000Z'));
    expect(params().get('to')).toBe(to);
  });

  it('the console shows when a delivery is due, and the remaining minutes only if they exceed clock differences', async () => {
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
