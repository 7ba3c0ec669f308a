import { expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { clipboardOf } from '../../support/browser/page-appearance.js';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { openTab, press, showsTypes, tabUrl } from '../../support/emulator/delivery-log-page.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import { eventually } from '../../support/time/waiting.js';

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
  it('the tabs stay open after a reload, and the back button returns to the earlier tab', async () => {
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

  it('the tabs keep the selected company, and a link to a tab contains it', async () => {
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

  it('the tabs keep the filter of the delivery log for the back button', async () => {
    for (const eventType of ['a.one', 'b.two']) {
      emulator.sendEvent({ eventType });
      await emulator.idle();
    }
    const page = await browser().page();
    await page.goto(tabUrl(emulator, 'deliveries'));
    await showsTypes(page, 'b.two', 'a.one');
    await page.getByRole('searchbox').fill('b.t');
    await showsTypes(page, 'b.two');
    await openTab(page, 'Credentials');
    await page.goBack();
    await showsTypes(page, 'b.two');
    expect(await page.getByRole('searchbox').inputValue()).toBe('b.t');
  });

  it('the tabs show how many faults are on, with a link to them and a button that switches them off', async () => {
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

  it('the pages show the clock of the emulator next to the real time if they differ', async () => {
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
  it('SE-14 a reachable emulator shows its pages to a browser that sends the control token as password', async () => {
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
