import { expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import type { Locator, Page, Route } from 'playwright-core';
import { clipboardOf } from '../../support/browser/page-appearance.js';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import {
  logSection,
  openLog,
  openTab,
  press,
  showsTypes,
  tabUrl,
} from '../../support/emulator/delivery-log-page.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import { eventually } from '../../support/time/waiting.js';

const payment = { amount: 1250.5, externalReference: 'order-77' };
let emulator: PaymentsEmulator;

useEmulator((started) => ({ emulator } = started));

/** Waits until the page shows one tab with this heading, and marks it in the list of tabs and in the title. */
async function shows(page: Page, tab: string, heading: string): Promise<void> {
  await page.getByRole('heading', { level: 2, name: heading, exact: true }).waitFor();
  const tabs = page.getByRole('navigation', { name: 'Tabs' });
  expect(await tabs.locator('[aria-current=page]').allInnerTexts()).toEqual([tab]);
  await eventually(async () => expect(await page.title()).toBe(`${tab} · payments-emulator`));
}

describeInBrowser('the tabs of the emulator', (browser) => {
  it('the selected tab stays open after a reload, and the back button returns to the earlier tab', async () => {
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator`);
    const tabs = [
      ['Payments', 'Payments of company default'],
      ['Deliveries', 'Deliveries'],
      ['Faults', 'Faults of company default'],
      ['Credentials', 'Credentials of company default'],
    ] as const;
    for (const [tab, heading] of tabs) {
      await openTab(page, tab);
      await shows(page, tab, heading);
      await page.reload();
      await shows(page, tab, heading);
    }
    await page.goBack();
    await shows(page, 'Faults', 'Faults of company default');
    await page.goto(`${emulator.baseUrl}/emulator?tab=nonsense`);
    await shows(page, 'Payments', 'Payments of company default');
  });

  it('the tabs keep the selected company, and a link to a tab contains the company', async () => {
    emulator.createCompany({ companyId: 'other' });
    const page = await browser().page();
    await page.goto(tabUrl(emulator, 'faults'));
    await page.getByRole('combobox', { name: 'Company' }).selectOption('other');
    await shows(page, 'Faults', 'Faults of company other');
    await openTab(page, 'Credentials');
    await shows(page, 'Credentials', 'Credentials of company other');
    expect(new URL(page.url()).search).toBe('?tab=credentials&company=other');
    await page.reload();
    await shows(page, 'Credentials', 'Credentials of company other');
  });

  it('the tabs show how many faults are on, with a link to these faults and a button that switches them off', async () => {
    const page = await browser().page();
    for (const tab of ['payments', 'deliveries', 'credentials'] as const) {
      emulator.setFaults({ delivery: { drop: {} }, api: { truncate: {} } });
      await page.goto(tabUrl(emulator, tab));
      await page.getByText('2 faults on for company default').waitFor();
      await page.getByRole('link', { name: 'Show the faults' }).click();
      await shows(page, 'Faults', 'Faults of company default');
      await page.goBack();
      await press(page, 'All faults off');
      await page.getByText('2 faults on for').waitFor({ state: 'detached' });
      expect(emulator.faults()).toEqual({});
    }
  });

  it("the pages of the emulator show the time of the emulator's clock and the real time if the two times differ", async () => {
    const day = 86_400_000;
    await using early = await PaymentsEmulator.start({ clock: new ManualClock(Date.now() - day) });
    const page = await browser().page();
    for (const path of ['?tab=payments', '?tab=deliveries', '/stk']) {
      await page.goto(`${early.baseUrl}/emulator${path}`);
      const notice = page.getByRole('note');
      await notice.getByText('by the emulator’s clock, which is 1 day').waitFor();
      const [own, real] = await notice
        .locator('time')
        .evaluateAll((times) => times.map((time) => time.getAttribute('datetime')!));
      expect(Math.round((Date.parse(real!) - Date.parse(own!)) / 1000)).toBeGreaterThanOrEqual(
        day / 1000,
      );
      expect(await notice.innerText()).toMatch(/Emulator’s clock: .*Real time: .* behind\.$/s);
      await page.goto(`${emulator.baseUrl}/emulator${path}`);
      await page.getByText(/No (payment|delivery) yet\.|0 prompts waiting/).waitFor();
      expect(await notice.count()).toBe(0);
    }
  });

  it('the credentials tab copies a value to the clipboard', async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const page = await browser().page({ permissions });
    await page.goto(tabUrl(emulator, 'credentials'));
    await page.getByText('hidden', { exact: true }).nth(4).waitFor();
    expect(await page.getByText('hidden', { exact: true }).count()).toBe(5);
    await press(page, 'Show the credentials');
    await press(page, 'Copy Client secret (production)');
    await page.getByText('Copied').waitFor();
    expect(await clipboardOf(page)).toBe(emulator.company.production.clientSecret);
  });
});

describeInBrowser('an emulator that other machines can reach, in a browser', (browser) => {
  it('SE-14 an emulator that other machines can reach shows its pages to a browser that sends the control token as password', async () => {
    await using emulator = await PaymentsEmulator.start({ host: '0.0.0.0' });
    const password = emulator.controlToken!;
    const page = await browser().page({ httpCredentials: { username: 'any', password } });
    await page.goto(tabUrl(emulator, 'credentials'));
    await page.getByRole('button', { name: 'Show the credentials' }).click();
    await page.getByText(emulator.company.webhookSecret).waitFor();
    await page.getByRole('link', { name: 'STK push prompts' }).click();
    await page.getByText('0 prompts waiting').waitFor();
  });
});

/** The list of payments on the page. */
function payments(page: Page): Locator {
  return page.getByRole('region', { name: /^Payments of/ }).getByRole('listitem');
}

describeInBrowser('payments and deliveries on the page of the emulator', (browser) => {
  it('the payments tab creates, completes and declines payments', async () => {
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator`);
    await page.getByText('No payment yet.').waitFor();
    for (const kind of ['checkout-invoice', 'stk-push', 'payout']) {
      await page.getByLabel('Kind').selectOption(kind);
      await page.getByLabel('Reference').fill(`by-${kind}`);
      await press(page, 'Create');
      await payments(page)
        .filter({ hasText: `by-${kind}` })
        .waitFor();
    }
    const entry = (kind: string) => payments(page).filter({ hasText: `by-${kind}` });
    await entry('payout').getByRole('button', { name: 'Complete', exact: true }).click();
    await entry('payout').getByText('complete', { exact: true }).waitFor();
    await entry('stk-push').getByRole('button', { name: 'Decline' }).click();
    await entry('stk-push').getByText('failed', { exact: true }).waitFor();
    await entry('stk-push').getByText('declined at').waitFor();
    await press(page, 'Complete in 1 min');
    await entry('checkout-invoice').getByText('completes at').waitFor();
    expect(emulator.transactions({ open: true })[0]?.completesAt).toBeDefined();
    expect(emulator.transactions().map(({ kind, status }) => [kind, status])).toEqual([
      ['checkout-invoice', 'pending'],
      ['stk-push', 'failed'],
      ['payout', 'complete'],
    ]);
    await page.getByLabel('Amount').fill('-5');
    await press(page, 'Create');
    await page.getByRole('alert').getByText('amount must be a number above 0').waitFor();
    await entry('checkout-invoice').getByRole('link', { name: 'Checkout page' }).click();
    await page.getByLabel('Phone number').waitFor();
    await page.getByRole('link', { name: 'Deliveries of this payment' }).click();
    await page.getByText('No delivery matches.').waitFor();
  });

  it('the payments tab links to the deliveries of a payment and to its prompt', async () => {
    emulator.sendEvent({ eventType: 'x.y' });
    const paid = emulator.createPayout(payment);
    emulator.complete(paid.transactionId);
    await emulator.idle();
    const push = emulator.createStkPush({ ...payment, externalReference: 'order-78' });
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator`);
    await payments(page)
      .filter({ hasText: 'order-77' })
      .getByRole('link', { name: 'Deliveries' })
      .click();
    await showsTypes(page, 'transaction.completed');
    expect(new URL(page.url()).search).toBe(`?tab=deliveries&search=${paid.transactionId}`);
    await page.goBack();
    await payments(page).getByRole('link', { name: 'Prompt' }).click();
    await page.getByRole('heading', { name: 'Pay KES 1,250.50 to default?' }).waitFor();
    expect(page.url()).toContain(push.transactionId);
  });

  it('the page of the emulator has a row with reference and amount for every payment and every delivery', async () => {
    for (const amount of [350, 1e12, 0.125]) {
      const paid = emulator.createPayout({ amount, externalReference: `order-${amount}` });
      emulator.complete(paid.transactionId);
      await emulator.idle();
    }
    emulator.sendEvent({ eventType: 'x.y', data: { amount: 'odd', externalReference: 7 } });
    await emulator.idle();
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator`);
    await eventually(async () => expect(await payments(page).count()).toBe(3));
    const cells = (rows: Locator) =>
      rows.evaluateAll((found) =>
        found.map((row) =>
          ['.reference', '.money'].map((cell) => row.querySelector(cell)?.textContent),
        ),
      );
    const newestFirst = [
      ['order-0.125', 'KES 0.125'],
      ['order-1000000000000', 'KES 1,000,000,000,000.00'],
      ['order-350', 'KES 350.00'],
    ];
    expect(await cells(payments(page))).toEqual(newestFirst);
    await openLog(page, emulator);
    await showsTypes(page, 'x.y', ...newestFirst.map(() => 'transaction.completed'));
    expect(await cells(page.locator('.line'))).toEqual([['–', '–'], ...newestFirst]);
    await logSection(page).getByLabel('Reference, transaction, event or type').fill('ORDER-35');
    await eventually(async () =>
      expect(await cells(page.locator('.line'))).toEqual(newestFirst.slice(2)),
    );
  });

  it('the pages of the emulator show the currency of the option `currency`', async () => {
    await using other = await PaymentsEmulator.start({ currency: 'EUR' });
    other.createStkPush(payment);
    const { checkoutUrl } = other.createCheckoutInvoice({ ...payment, amount: 350 });
    const page = await browser().page();
    await page.goto(`${other.baseUrl}/emulator`);
    await payments(page).getByText('EUR 350.00').waitFor();
    await page.getByLabel('Amount in EUR').waitFor();
    await page.goto(`${other.baseUrl}/emulator/stk`);
    await page.getByRole('heading', { name: 'Pay EUR 1,250.50 to default?' }).waitFor();
    await page.goto(checkoutUrl);
    await page.getByText('EUR 350.00', { exact: true }).waitFor();
  });

  it('the payments tab lists the ten newest payments, and more payments after a click', async () => {
    for (let number = 1; number <= 12; number++) {
      emulator.createPayout({ ...payment, externalReference: `order-${number}` });
    }
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator`);
    await eventually(async () => expect(await payments(page).count()).toBe(10));
    expect(await payments(page).first().innerText()).toContain('order-12');
    await press(page, 'Show more');
    await eventually(async () => expect(await payments(page).count()).toBe(12));
    expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0);
  });

  it('when new data arrive, the payments tab does not overwrite the text that the user is typing', async () => {
    const page = await browser().page();
    await page.goto(`${emulator.baseUrl}/emulator`);
    await page.getByLabel('Reference').fill('half-typed');
    await page.getByLabel('Amount').fill('77');
    emulator.setFaults({ api: { truncate: {} } });
    emulator.createPayout(payment);
    await payments(page).getByText('order-77').waitFor();
    await page.getByText('1 fault on for company default').waitFor();
    expect(await page.getByLabel('Reference').inputValue()).toBe('half-typed');
    expect(await page.getByLabel('Amount').inputValue()).toBe('77');
  });
});

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

  it('a delayed response does not change a selection that the user makes while a fault is being switched on', async () => {
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

  it('the page of the emulator shows the result of an attempt that ends while its details are loading', async () => {
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
