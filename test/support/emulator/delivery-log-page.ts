import { expect } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import type { Locator, Page } from 'playwright-core';
import { eventually } from '../time/waiting.js';

/** Clicks a button of the page. */
export function press(page: Page, name: string | RegExp): Promise<void> {
  return page.getByRole('button', { name }).click();
}

export function logSection(page: Page): Locator {
  return page.getByRole('region', { name: 'Deliveries', exact: true });
}

export function entries(page: Page): Locator {
  return logSection(page).getByRole('listitem');
}

/** The tabs of the emulator's page. */
export type EmulatorTab = 'payments' | 'deliveries' | 'faults' | 'credentials';

/** The URL of a tab of the emulator's page. */
export function tabUrl({ baseUrl }: PaymentsEmulator, tab: EmulatorTab): string {
  return `${baseUrl}/emulator?tab=${tab}`;
}

/** Opens another tab of the emulator's page, without loading the page again. */
export function openTab(page: Page, name: string): Promise<void> {
  return page
    .getByRole('navigation', { name: 'Tabs' })
    .getByRole('link', { name, exact: true })
    .click();
}

/** Opens the tab with the delivery log. */
export async function openLog(page: Page, emulator: PaymentsEmulator): Promise<void> {
  await page.goto(tabUrl(emulator, 'deliveries'));
  await logSection(page).waitFor();
}

/** Waits until the log shows entries with exactly these event types. */
export async function showsTypes(page: Page, ...types: string[]): Promise<void> {
  await eventually(async () => {
    expect(await page.locator('.line .what').allInnerTexts()).toEqual(types);
  });
}
