import { expect, it, jest } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import type { Page, Route } from 'playwright-core';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { tabUrl } from '../support/emulator/delivery-log-page.js';
import { eventually } from '../support/time/waiting.js';
import { useEmulator } from '../support/emulator/shared-emulator.js';

jest.setTimeout(60_000);

let emulator: PaymentsEmulator;

useEmulator((started) => ({ emulator } = started));

/** Delays the first response to a matching request until the test releases it. */
async function holdFirst(
  page: Page,
  url: RegExp,
  method: string,
): Promise<{ held: Promise<void>; release: () => Promise<void> }> {
  const { promise: held, resolve: markHeld } = Promise.withResolvers<void>();
  const { promise: released, resolve: markReleased } = Promise.withResolvers<void>();
  const { promise: responded, resolve: done } = Promise.withResolvers<void>();
  let first = true;
  await page.route(url, async (route: Route) => {
    if (!first || route.request().method() !== method) return route.continue();
    first = false;
    const response = await route.fetch();
    markHeld();
    await released;
    await route.fulfill({ response });
    done();
  });
  const release = async (): Promise<void> => {
    const arrived = page.waitForResponse((response) => url.test(response.url()));
    markReleased();
    await Promise.all([arrived, responded]);
  };
  return { held, release };
}

describeInBrowser('a delayed response on the page', (browser) => {
  it('a delayed response does not overwrite text that was typed after the request', async () => {
    emulator.setFaults({ delivery: { duplicate: { copies: 1 } } });
    const page = await browser().page();
    const { held, release } = await holdFirst(page, /\/faults\/delivery\/duplicate$/, 'PUT');
    await page.goto(tabUrl(emulator, 'faults'));
    const fault = page
      .getByRole('region', { name: 'Faults: Deliveries' })
      .getByRole('listitem')
      .filter({ has: page.locator('#delivery-duplicate-description') });
    await fault.locator('summary').click();
    await fault.getByLabel('number of copies').fill('3');
    const times = fault.getByLabel('only the next … times');
    await times.focus();
    await held;
    await times.pressSequentially('2');
    await release();
    await eventually(async () =>
      expect(await fault.getByLabel('number of copies').inputValue()).toBe('3'),
    );
    await times.press('Tab');
    await eventually(() =>
      expect(emulator.faults()).toEqual({ delivery: { duplicate: { copies: 3, next: 2 } } }),
    );
  });

  it('a delayed response keeps a selection that the user makes while a fault is being switched on', async () => {
    const page = await browser().page();
    const { held, release } = await holdFirst(page, /\/faults\/delivery\/tamperSignature$/, 'PUT');
    await page.goto(tabUrl(emulator, 'faults'));
    const control = page.locator(
      '[role=switch][aria-describedby=delivery-tamperSignature-description]',
    );
    const fault = page.getByRole('listitem').filter({ has: control });
    await control.click();
    await held;
    await fault.locator('summary').click();
    await fault.getByLabel('how').selectOption('missing');
    await release();
    await eventually(() =>
      expect(emulator.faults()).toEqual({ delivery: { tamperSignature: { how: 'missing' } } }),
    );
  });

  it('the page shows the result of an attempt that ends while its details are loading', async () => {
    emulator.setFaults({ delivery: { delay: { ms: 600_000 } } });
    const page = await browser().page();
    const record = /\/emulator\/deliveries\/[\da-f-]{36}$/;
    const { held, release } = await holdFirst(page, record, 'GET');
    await page.goto(tabUrl(emulator, 'deliveries'));
    emulator.sendEvent({ eventType: 'x.y' });
    await page.locator('button.line').click();
    await held;
    await emulator.flush();
    await page.getByLabel('Request body', { exact: true }).waitFor();
    await release();
    // The page has rendered the response when it has received the next one.
    await page.waitForResponse(/\/emulator\/overview$/);
    expect(await page.getByLabel('Request body', { exact: true }).count()).toBe(1);
  });
});
