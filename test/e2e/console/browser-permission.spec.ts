import { expect, it } from '@jest/globals';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { changed, ConsoleApplication } from '../../support/console/console-browser.js';

describeInBrowser('an operator of the inbox console who may only look', (browser) => {
  it('SE-15 for an operator who may only read, the console disables the buttons of actions, shows the reason, and shows all data', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = 'no such order';
    await app.receive({ id: 'evt_1', data: { card: 'a-customer' } });
    const page = await app.open(browser());
    await changed(page, 'overview', (overview) => ({ ...overview, may: 'read' }));
    for (const [place, label, enabled] of [
      ['', 'Pause all handlers', '24 h'],
      ['failures', /^Redrive …/, 'Keyboard shortcuts'],
      ['events/default/evt_1', 'Redrive … Orders.markPaid', 'Copy id'],
    ] as const) {
      await page.goto(`${app.url}#/${place}`);
      await page.reload();
      const button = page.getByRole('button', { name: label });
      await button.waitFor();
      expect([await button.isDisabled(), await button.getAttribute('title')]).toEqual([
        true,
        'You may look, but not act.',
      ]);
      const other = page.getByRole('button', { name: enabled }).first();
      expect([place, await other.isDisabled()]).toEqual([place, false]);
    }
    await page.getByText('a-customer').waitFor();
    await page.locator('.masthead').getByText('read only').waitFor();
  });
});
