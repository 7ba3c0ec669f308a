import { expect, it, jest } from '@jest/globals';
import { arrived, describeInBrowser } from '../support/browser/test-browser.js';
import { startProgram } from '../support/processes/program.js';
import { payAtCheckout } from '../support/shop/shop-pages.js';

jest.setTimeout(120_000);

const DEMO = 'apps/demo/dist/main.js';

describeInBrowser('npm run demo in a browser', (browser) => {
  it.each([
    ['one shop', []],
    ['three shops on PostgreSQL', ['--postgres']],
  ])(
    'npm run demo shows a paid order on the pages of shop, emulator and console with %s, and ends on Ctrl-C',
    async (_, args) => {
      await using demo = startProgram(DEMO, {}, args);
      await demo.prints(/^Ctrl-C closes them/);
      const [shop, emulator, console] = demo.out
        .filter((line) => /^ {4}http:\S+$/.test(line))
        .map((line) => line.trim());
      const [, username, password] = await demo.prints(/as (\S+) with the password (\S+):$/);

      const page = await browser().page();
      await page.goto(shop!);
      await page.getByRole('button', { name: 'Buy Mandazi' }).click();
      await arrived(page, /\/orders\/mandazi-/);
      const reference = new URL(page.url()).pathname.slice('/orders/'.length);
      const [checkout] = await Promise.all([
        page.context().waitForEvent('page'),
        page.getByRole('link', { name: /^Pay KES 99\.99/ }).click(),
      ]);
      await payAtCheckout(checkout);
      await page.locator('.order .status').getByText('Paid', { exact: true }).waitFor();

      await checkout.goto(emulator!);
      await checkout
        .getByRole('region', { name: /^Payments of/ })
        .getByText(reference)
        .waitFor();
      const operator = await browser().page({
        httpCredentials: { username: username!, password: password! },
      });
      await operator.goto(`${console}#/events`);
      await operator.locator('.events tbody tr').first().getByRole('link').first().click();
      await operator.locator('.payload').getByText(reference).waitFor();

      expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
      await page.getByText(/^The shop has not been reachable since/).waitFor();
    },
  );
});
