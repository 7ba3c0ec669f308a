import type { Page } from 'playwright-core';

/** The one-time code that the emulated phone of the hosted checkout shows. */
export async function codeOnPhone(page: Page): Promise<string> {
  const message = await page.getByLabel("The customer's phone, emulated").innerText();
  return /\b\d{6}\b/.exec(message)![0];
}

/** Enters a phone number and the one-time code at the hosted checkout, as its customer. */
export async function confirmAtCheckout(page: Page): Promise<void> {
  await page.getByLabel('Phone number').fill('+1 555 010 0123');
  await page.getByRole('button', { name: 'Send the code' }).click();
  await page.getByLabel('One-time code').fill(await codeOnPhone(page));
  await page.getByRole('button', { name: 'Confirm the code' }).click();
}

/** Pays at the hosted checkout, as its customer: phone number, one-time code, payment. */
export async function payAtCheckout(page: Page): Promise<void> {
  await confirmAtCheckout(page);
  await page.getByRole('button', { name: /^Pay / }).click();
  await page.getByText('Paid', { exact: true }).waitFor();
}
