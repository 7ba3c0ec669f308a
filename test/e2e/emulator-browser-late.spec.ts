import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Page, Route } from 'playwright-core';
import { describeInBrowser } from '../support/browser.js';
import { eventually } from '../support/eventually.js';
import { WebhookReceiver } from '../support/emulator/webhook-receiver.js';

jest.setTimeout(60_000);

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  emulator = await PaymentsEmulator.start({ webhookUrl: receiver.url });
});
beforeEach(() => emulator.reset());
afterAll(async () => {
  await emulator.close();
  await receiver[Symbol.asyncDispose]();
});

/** Keeps the first answer to such a request back, until it is let go. */
async function holdFirst(
  page: Page,
  url: RegExp,
  method: string,
): Promise<{ held: Promise<void>; letGo: () => Promise<void> }> {
  const { promise: held, resolve: holds } = Promise.withResolvers<void>();
  const { promise: release, resolve: released } = Promise.withResolvers<void>();
  const { promise: answered, resolve: done } = Promise.withResolvers<void>();
  let first = true;
  await page.route(url, async (route: Route) => {
    if (!first || route.request().method() !== method) return route.continue();
    first = false;
    const response = await route.fetch();
    holds();
    await release;
    await route.fulfill({ response });
    done();
  });
  const letGo = async (): Promise<void> => {
    const arrived = page.waitForResponse((response) => url.test(response.url()));
    released();
    await Promise.all([arrived, answered]);
  };
  return { held, letGo };
}

describeInBrowser('a delayed response on the page', (browser) => {
  it('does not overwrite text that was typed after the request', async () => {
    emulator.setFaults({ delivery: { duplicate: { copies: 1 } } });
    const page = await browser().page();
    const { held, letGo } = await holdFirst(page, /\/faults\/delivery\/duplicate$/, 'PUT');
    await page.goto(`${emulator.baseUrl}/emulator`);
    const fault = page
      .getByRole('region', { name: 'Faults: Deliveries' })
      .getByRole('listitem')
      .filter({ has: page.locator('#delivery-duplicate-description') });
    await fault.locator('summary').click();
    await fault.getByLabel('further copies').fill('3');
    const times = fault.getByLabel('only the next … times');
    await times.focus();
    await held;
    await times.pressSequentially('2');
    await letGo();
    await eventually(async () =>
      expect(await fault.getByLabel('further copies').inputValue()).toBe('3'),
    );
    await times.press('Tab');
    await eventually(() =>
      expect(emulator.faults()).toEqual({ delivery: { duplicate: { copies: 3, next: 2 } } }),
    );
  });

  it('does not lose a choice made while a fault is being switched on', async () => {
    const page = await browser().page();
    const { held, letGo } = await holdFirst(page, /\/faults\/delivery\/tamperSignature$/, 'PUT');
    await page.goto(`${emulator.baseUrl}/emulator`);
    const control = page.locator(
      '[role=switch][aria-describedby=delivery-tamperSignature-description]',
    );
    const fault = page.getByRole('listitem').filter({ has: control });
    await control.click();
    await held;
    await fault.locator('summary').click();
    await fault.getByLabel('how').selectOption('missing');
    await letGo();
    await eventually(() =>
      expect(emulator.faults()).toEqual({ delivery: { tamperSignature: { how: 'missing' } } }),
    );
  });

  it('does not hide the result of an attempt that has ended in the meantime', async () => {
    emulator.setFaults({ delivery: { delay: { ms: 600_000 } } });
    const page = await browser().page();
    const record = /\/emulator\/deliveries\/[\da-f-]{36}$/;
    const { held, letGo } = await holdFirst(page, record, 'GET');
    await page.goto(`${emulator.baseUrl}/emulator`);
    emulator.sendEvent({ eventType: 'x.y' });
    await page.locator('button.line').click();
    await held;
    await emulator.flush();
    await page.getByLabel('Request body', { exact: true }).waitFor();
    await letGo();
    // Drawn by then: what is asked for next has been answered.
    await page.waitForResponse(/\/emulator\/overview$/);
    expect(await page.getByLabel('Request body', { exact: true }).count()).toBe(1);
  });
});
