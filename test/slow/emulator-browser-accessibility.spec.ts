import { expect, it } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { seriousViolations } from '../support/browser/accessibility.js';
import { brightness, widthOf } from '../support/browser/page-appearance.js';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { openLog, press, tabUrl } from '../support/emulator/delivery-log-page.js';
import { openFaults } from '../support/emulator/fault-switches.js';
import { useEmulator } from '../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../support/emulator/webhook-receiver.js';

const VIEWPORTS = {
  desktop: { width: 1280, height: 800 },
  tablet: { width: 820, height: 1100 },
  phone: { width: 390, height: 844 },
};
let emulator: PaymentsEmulator;
let receiver: WebhookReceiver;

useEmulator((started) => ({ emulator, receiver } = started));

const heightOf = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollHeight');

/** Fills the emulator with payments, deliveries, prompts and faults in many states, some with long texts. */
async function fill(): Promise<void> {
  receiver.respondWith(500, 200);
  emulator.setFaults({ delivery: { duplicate: {}, tamperBody: {} }, api: { oversize: {} } });
  for (let number = 1; number <= 15; number++) {
    const push = emulator.createStkPush({ amount: number, externalReference: `order-${number}` });
    if (number % 3 === 0) emulator.fail(push.transactionId);
    else if (number % 3 === 1) emulator.complete(push.transactionId);
  }
  emulator.createCheckoutInvoice({ amount: 1e12, externalReference: 'reference-'.repeat(25) });
  emulator.sendEvent({ eventType: 'type.'.repeat(25), data: { long: 'x'.repeat(500) } });
  await emulator.idle();
}

/** Opens each page of the filled emulator, with everything on it expanded. */
async function* expandedPages(page: Page): AsyncGenerator<string> {
  const { baseUrl } = emulator;
  await page.goto(tabUrl(emulator, 'payments'));
  await page.getByRole('link', { name: 'Deliveries' }).nth(1).waitFor();
  const create = page.getByRole('group').filter({ hasText: 'Create a payment' });
  if (!(await page.getByLabel('Kind').isVisible())) await create.locator('summary').click();
  yield 'payments';
  await openLog(page, emulator);
  await page.locator('.line').first().click();
  await page.getByLabel('Request body', { exact: true }).waitFor();
  yield 'deliveries';
  await openFaults(page, emulator);
  const closed = await page.locator('.fault-group:not([open]) > summary').all();
  // The locators contain the numbers of the closed groups. If the last group is opened first, these numbers stay
  // correct.
  for (const group of closed.toReversed()) await group.click();
  // A fault without settings has hidden details.
  for (const details of await page.locator('.fault details:not([hidden]) > summary').all()) {
    await details.click();
  }
  yield 'faults';
  await page.goto(tabUrl(emulator, 'credentials'));
  await press(page, 'Show the credentials');
  await page.getByText(emulator.company.webhookSecret).waitFor();
  yield 'credentials';
  await page.goto(`${baseUrl}/emulator/stk`);
  await page.getByText('5 prompts waiting').waitFor();
  yield 'prompts';
  await page.goto(emulator.transactions({ kind: 'checkout-invoice' })[0]!.checkoutUrl!);
  yield 'checkout';
  await page.getByLabel('Phone number').fill('+1 555 010 0123');
  await press(page, 'Send the code');
  await page.getByLabel('One-time code').waitFor();
  yield 'one-time code';
}

describeInBrowser('accessibility of the pages of the emulator', (browser) => {
  it.each(['desktop', 'tablet', 'phone'] as const)(
    'the pages of the emulator are accessible and fit the width of a %s in both color schemes',
    async (device) => {
      await fill();
      const viewport = VIEWPORTS[device];
      const page = await browser().page({ viewport });
      for await (const name of expandedPages(page)) {
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          const at = `${name}, ${colorScheme}`;
          // What axe-core finds depends on the color scheme, and on what a phone hides.
          if (device === 'desktop' || (device === 'phone' && colorScheme === 'dark')) {
            expect([at, await seriousViolations(page)]).toEqual([at, []]);
          }
          expect([at, await widthOf(page)]).toEqual([at, viewport.width]);
          expect([at, (await brightness(page)) > 0.5]).toEqual([at, colorScheme === 'light']);
        }
      }
    },
  );

  it('the tabs of the emulator are at most three screens long on a phone', async () => {
    emulator.setFaults({ delivery: { duplicate: {} }, api: { oversize: {} } });
    for (let number = 1; number <= 30; number++) {
      const push = emulator.createStkPush({ amount: number, externalReference: `order-${number}` });
      emulator.complete(push.transactionId);
    }
    await emulator.idle();
    const page = await browser().page({ viewport: VIEWPORTS.phone });
    const limit = 3 * VIEWPORTS.phone.height;
    await page.goto(tabUrl(emulator, 'payments'));
    await page.getByRole('button', { name: 'Show more' }).waitFor();
    expect(await heightOf(page)).toBeLessThan(limit);
    await openLog(page, emulator);
    await page.getByRole('button', { name: 'Older' }).waitFor();
    expect(await heightOf(page)).toBeLessThan(limit);
    await openFaults(page, emulator);
    expect(await heightOf(page)).toBeLessThan(limit);
    await page.goto(tabUrl(emulator, 'credentials'));
    await press(page, 'Show the credentials');
    await page.getByText(emulator.company.webhookSecret).waitFor();
    expect(await heightOf(page)).toBeLessThan(limit);
  });
});
