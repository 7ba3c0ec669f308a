import type { Page } from 'playwright-core';

/** A customer at the hosted checkout: phone number, one-time code, pay. */
export async function payAtCheckout(page: Page): Promise<void> {
  await page.getByLabel('Phone number').fill('+1 555 010 0123');
  await page.getByRole('button', { name: 'Send the code' }).click();
  const message = await page.getByLabel("The customer's phone, emulated").innerText();
  await page.getByLabel('One-time code').fill(/\b\d{6}\b/.exec(message)![0]);
  await page.getByRole('button', { name: 'Confirm the code' }).click();
  await page.getByRole('button', { name: /^Pay / }).click();
  await page.getByText('Paid', { exact: true }).waitFor();
}
