import { expect } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import type { Locator, Page } from 'playwright-core';
import { eventually } from '../time/waiting.js';

/** Clicks a button of the page. */
export function press(page: Page, name: string | RegExp): Promise<void> {
  return page.getByRole('button', { name }).click();
}

/** The section of the delivery log. */
export function logSection(page: Page): Locator {
  return page.getByRole('region', { name: 'Deliveries', exact: true });
}

/** The entries of the delivery log. */
export function entries(page: Page): Locator {
  return logSection(page).getByRole('listitem');
}

/** Opens the page of the delivery log. */
export async function openLog(page: Page, emulator: PaymentsEmulator): Promise<void> {
  await page.goto(`${emulator.baseUrl}/emulator`);
  await logSection(page).waitFor();
}

/** Waits until the log shows entries with exactly these event types. */
export async function showsTypes(page: Page, ...types: string[]): Promise<void> {
  await eventually(async () => {
    expect(await page.locator('.line .what').allInnerTexts()).toEqual(types);
  });
}
