import { expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { describeInBrowser } from '../support/browser/test-browser.js';
import { tabUrl } from '../support/emulator/delivery-log-page.js';

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

  it('SE-14 a reachable emulator shows no page without the control token, except the checkout', async () => {
    await using emulator = await PaymentsEmulator.start({ host: '0.0.0.0' });
    const withoutToken = await browser().page();
    const opened = withoutToken.goto(`${emulator.baseUrl}/emulator`);
    const refused = await opened.catch((error: Error) => error);
    // Without a user who enters a password, Chromium can end the navigation instead of showing the response.
    expect(refused instanceof Error || refused?.status() === 401).toBe(true);
    const invoice = { amount: 1500, externalReference: 'order-77' };
    const { checkoutUrl } = emulator.createCheckoutInvoice(invoice);
    // A separate page, because the error page of the ended navigation can interrupt the next one.
    const page = await browser().page();
    await page.goto(checkoutUrl);
    await page.getByLabel('Phone number').fill('+1 555 010 0123');
    await page.getByRole('button', { name: 'Send the code' }).click();
    await page.getByLabel('One-time code').fill((await page.locator('.digits').textContent())!);
    await page.getByRole('button', { name: 'Confirm the code' }).click();
    await page.getByRole('button', { name: 'Pay KES 1,500.00' }).click();
    await page.getByText('Paid', { exact: true }).waitFor();
    expect(await page.getByRole('link').count()).toBe(0);
  });
});
