import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { PaymentsEmulator } from 'payments-emulator';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { ConsoleApplication } from '../../support/console/console-browser.js';
import { optionsOf } from '../../support/setup/checked-application.js';
import { eventually } from '../../support/time/waiting.js';

/** The text of a check, by its heading. */
const check = (page: Page, title: string) =>
  page
    .locator('.checks li')
    .filter({ has: page.getByRole('heading', { name: title, exact: true }) });

async function start(companies?: string[]) {
  const emulator = await PaymentsEmulator.start({ companies });
  const app = await ConsoleApplication.start(optionsOf(emulator));
  for (const { companyId } of emulator.companies()) {
    const path = companies ? `/webhooks/payments/${companyId}` : '/webhooks/payments';
    emulator.setWebhook({ companyId, url: `${app.merchant.url}${path}` });
  }
  return {
    app,
    emulator,
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]();
      await emulator.close();
    },
  };
}

describeInBrowser('the page Setup of the inbox console', (browser) => {
  it('AP-18 the page of the setup marks each successful check, and sends a test webhook on request', async () => {
    await using started = await start();
    const { app, emulator } = started;
    const page = await app.open(browser(), 'setup');
    await page.locator('.checks[aria-busy=false]').waitFor();
    for (const title of ['Settings', 'Access token of default', 'Inbox', 'Handlers']) {
      await check(page, title).getByText('ok', { exact: true }).first().waitFor();
    }
    expect(await page.getByRole('status').last().innerText()).toContain('found');
    expect(emulator.deliveries()).toEqual([]);
    await page.getByRole('button', { name: 'Send test webhook of default' }).click();
    const webhook = check(page, 'Test webhook of default');
    await webhook.getByText('arrived and its signature is valid').waitFor();
    expect(emulator.deliveries()).toHaveLength(1);
  });

  it('OP-21 the overview sends a test webhook, shows when it has arrived, and shows which secret verified it', async () => {
    await using started = await start();
    const { app, emulator } = started;
    const page = await app.open(browser());
    const row = page.getByRole('table', { name: 'Webhook secrets' }).getByRole('row').nth(1);
    await row.getByText('nothing since').waitFor();
    await row.getByRole('button', { name: 'Send test webhook of default' }).click();
    await row.getByText('arrived and its signature is valid').waitFor();
    await row.getByText('nothing since').waitFor({ state: 'detached' });
    await page.getByText('1 accepted, 0 rejected').first().waitFor();
    emulator.rotateWebhookSecret();
    await row.getByRole('button', { name: 'Send test webhook of default' }).click();
    await row.getByText('was rejected (signature_mismatch)').waitFor();
    await row.getByRole('link', { name: 'Check the setup' }).waitFor();
    await page.getByText('All rejected: 1 request since the last accepted one').waitFor();
  });

  it('AP-18 the page of the setup shows each problem with its fix, and repeats the checks on request', async () => {
    await using started = await start();
    const { app, emulator } = started;
    emulator.rotateClientSecret();
    emulator.rotateWebhookSecret();
    const page = await app.open(browser(), 'setup');
    const token = check(page, 'Access token of default');
    await token.getByText('failed', { exact: true }).waitFor();
    await token.getByText('Fix:').waitFor();
    expect(await token.innerText()).toContain('rejected the credentials');
    await eventually(async () =>
      expect(await page.getByRole('status').last().innerText()).toMatch(/^1 failure/),
    );
    await page.getByRole('button', { name: 'Check again' }).click();
    await page.locator('.checks[aria-busy=true]').waitFor();
    await token.getByText('failed', { exact: true }).waitFor();
  });

  it('AP-18 the page of the setup checks each company of a list', async () => {
    await using started = await start(['acme', 'umbrella']);
    const page = await started.app.open(browser(), 'setup');
    await page.locator('.checks[aria-busy=false]').waitFor();
    await page.getByRole('button', { name: 'Send test webhook of umbrella' }).click();
    await check(page, 'Test webhook of umbrella').getByText('ok', { exact: true }).waitFor();
    const other = check(page, 'Test webhook of acme');
    expect(await other.getByText('ok', { exact: true }).count()).toBe(0);
    expect(await check(page, 'Settings').innerText()).toMatch(/acme: .*umbrella: /s);
  });

  it('AP-18 the page of the setup asks for the company if a directory finds the companies', async () => {
    const emulator = await PaymentsEmulator.start({ companies: ['acme', 'umbrella'] });
    const { companies = [], baseUrl = '' } = optionsOf(emulator);
    const find = (id: string) => companies.find((company) => company.id === id);
    await using app = await ConsoleApplication.start({ baseUrl, companies: { find } });
    const page = await app.open(browser(), 'setup');
    await page.getByLabel('Company').fill('umbrella');
    await page.keyboard.press('Enter');
    await check(page, 'Access token of umbrella').getByText('ok', { exact: true }).waitFor();
    expect(page.url()).toContain('#/setup?company=umbrella');
    await emulator.close();
  });
});
