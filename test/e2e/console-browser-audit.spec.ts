import { expect, it } from '@jest/globals';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { ConsoleApplication, changed, confirm } from '../support/console/console-browser.js';
import { eventually } from '../support/time/waiting.js';

describeInBrowser('the audit trail of the inbox console', (browser) => {
  it('the console shows who did what, when and with which result, and which payloads were viewed', async () => {
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
      /\d\d:\d\d:\d\d \S+\s+ada\s+Redrive event "evt_1".*done\s+1 delivery of 1 event/s,
    );
    expect(view).toMatch(/ada\s+View of a payload evt_1\s+done/s);

    await page.getByRole('link', { name: 'Actions', exact: true }).click();
    await eventually(async () => expect(await rows.count()).toBe(1));
    await page.reload();
    await rows.getByText('Redrive').waitFor();
    expect(page.url()).toContain('#/audit?show=actions');
    await page.getByRole('link', { name: 'Views of payloads' }).click();
    await rows.getByRole('link', { name: 'evt_1' }).click();
    await page.getByRole('heading', { level: 1, name: 'transaction.completed' }).waitFor();
  });

  it('the audit page shows rejected actions with their cause, and texts with any characters as text', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser(), 'audit');
    const entry = {
      at: '2026-11-20T08:00:00.000Z',
      action: 'pause',
      target: 'handler "<img src=x onerror=alert(1)>\u202e"',
      event: null,
      result: {},
    };
    const entries = Array.from({ length: 100 }, (_, index) => ({
      ...entry,
      id: index,
      who: index === 0 ? null : '<b>ann</b>',
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
    expect(second).toContain('Pause handler "<img src=x onerror=alert(1)>\\u202e"');
    expect(second).toMatch(/rejected or failed\s+No handler has this <i>name<\/i>\./);
    await page.getByRole('link', { name: 'Show all' }).click();
    await page.getByText('101 entries on this page').waitFor();
  });
});
