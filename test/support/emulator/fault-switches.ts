import { expect } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { eventually } from '../time/waiting.js';
import { tabUrl } from './delivery-log-page.js';

/** Opens the tab with the faults and waits until it is complete. */
export async function openFaults(page: Page, emulator: PaymentsEmulator): Promise<void> {
  await page.goto(tabUrl(emulator, 'faults'));
  await page.getByRole('region', { name: 'Faults of company default' }).waitFor();
  // Later content would move the switches.
  await eventually(async () => expect(await page.getByText('Loading…').count()).toBe(0));
}

/** The switch and the settings of a fault on the page. */
export function faultSwitch(page: Page, target: string, fault: string) {
  const control = page.locator(`[role=switch][aria-describedby="${target}-${fault}-description"]`);
  const item = page.getByRole('listitem').filter({ has: control });
  return {
    switch: control,
    item,
    /** Enters a setting and leaves the field. */
    async set(label: string, text: string): Promise<void> {
      if ((await item.locator('details[open]').count()) === 0) {
        await item.locator('summary').click();
      }
      await item.getByLabel(label).fill(text);
      await item.getByLabel(label).press('Tab');
    },
  };
}
