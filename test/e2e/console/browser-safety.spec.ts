import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { ConsoleApplication, countedDialog } from '../../support/console/console-browser.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { eventually } from '../../support/time/waiting.js';
import { setHidden } from '../../support/browser/page-appearance.js';

const MARKUP = `</pre></title><script>ran=1</script><img src=x onerror="ran=1">" autofocus onfocus="ran=1" x="`;

/** Elements of the page that can only come from markup in a payload. */
const STRANGE = 'body script, body img, body [onerror], body [onfocus], body [autofocus], title *';

const query = (params: Record<string, string>) => new URLSearchParams(params).toString();

async function expectOnlyText(page: Page): Promise<void> {
  expect(await page.locator(STRANGE).count()).toBe(0);
  expect(await page.evaluate(() => 'ran' in globalThis)).toBe(false);
}

/** A page of another site that sends requests to the console in the operator's browser. */
async function hostile(console: string) {
  const forged = `
    const target = ${JSON.stringify(console)};
    const plain = { method: 'POST', credentials: 'include', mode: 'no-cors', body: '{"handler":"*"}' };
    const json = { 'content-type': 'application/json', 'x-payments-console': '1' };
    const requests = [
      fetch(target + 'api/pause', plain),
      fetch(target + 'api/pause', { ...plain, headers: { 'content-type': 'text/plain' } }),
      fetch(target + 'api/pause', { ...plain, mode: 'cors', headers: json }),
      fetch(target + 'api/overview', { credentials: 'include' }).then((response) => response.text()),
      fetch(target + 'api/overview', { credentials: 'include', mode: 'no-cors' }).then((response) => response.text()),
    ];
    navigator.sendBeacon(target + 'api/pause', plain.body);
    Promise.allSettled(requests).then((all) => {
      globalThis.got = all.map(({ value }) => (typeof value === 'string' ? value : '')).join('');
      document.forms[0].submit();
    });`;
  const html = `<!doctype html><title>a prize</title>
    <form method="post" enctype="text/plain" action="${console}api/pause" target="_blank">
      <input name='{"handler":"*","x":"' value='"}'>
    </form>
    <script>${forged}</script>`;
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describeInBrowser('security of the inbox console in a browser', (browser) => {
  it('the console shows markup in a payload as text in every view', async () => {
    await using app = await ConsoleApplication.start();
    app.handlers.trouble = MARKUP;
    const id = `evt_${MARKUP}`;
    const eventType = `transaction.${MARKUP}`;
    const sent = webhookRequest({
      id,
      eventType,
      data: {
        transactionId: MARKUP,
        externalReference: MARKUP,
        currency: '<b>',
        note: MARKUP,
        [MARKUP]: '\u202eltr',
        amount: 1,
      },
      metadata: { '</script>': [MARKUP] },
    });
    await app.send(sent, { 'User-Agent': MARKUP });
    await app.settled(id);

    const page = await app.open(browser(), `events?${query({ search: MARKUP })}`);
    const row = page.locator('.events tbody tr');
    await row.waitFor();
    const parts = [eventType, `${MARKUP}<`, '<b>\u00a01.00', `Error: ${MARKUP}`];
    for (const part of parts) expect(await row.textContent()).toContain(part);
    expect(await row.locator('.what .id').getAttribute('title')).toBe(id);
    expect(await row.locator('.payment .id').getAttribute('title')).toBe(MARKUP);
    await expectOnlyText(page);
    await page.goto(`${app.url}#/failures`);
    const group = page.locator('.failures tbody tr');
    await group.waitFor();
    expect(await group.textContent()).toContain(`Error: ${MARKUP}`);
    await expectOnlyText(page);

    await group.locator('.example a').click();
    await page.locator('.payload').waitFor();
    await eventually(async () => expect(await page.title()).toContain(id));
    expect(await page.getByRole('article').textContent()).toContain(MARKUP);
    expect(await page.locator('.headers').textContent()).toContain(MARKUP);
    const shown = (await page.locator('.payload').textContent())!;
    expect(shown).toContain(JSON.stringify(MARKUP));
    expect(shown).toContain('\\u202eltr');
    expect(shown).not.toContain('\u202e');
    await expectOnlyText(page);

    await page.getByRole('button', { name: /^Redrive/ }).click();
    expect(await (await countedDialog(page)).textContent()).toContain(id);
    await expectOnlyText(page);
    await page.goto(`${app.url}#/events?${query({ state: MARKUP, handler: MARKUP })}`);
    await page.getByText('The filter is not valid.').waitFor();
    await page.goto(
      `${app.url}#/events/${encodeURIComponent(MARKUP)}/${encodeURIComponent(MARKUP)}`,
    );
    await page.getByText('No such event.').waitFor();
    await expectOnlyText(page);
  });

  it('the console rejects requests of another site with the credentials of the operator', async () => {
    await using app = await ConsoleApplication.start();
    const seen: { url: string; authorized: boolean }[] = [];
    const server = app.merchant.app.getHttpServer() as Server;
    server.on('request', ({ headers, url = '' }) => {
      if (headers['sec-fetch-site'] !== 'cross-site') return;
      seen.push({ url, authorized: 'authorization' in headers });
    });
    const signedIn = await app.open(browser());
    await signedIn.getByText('No event received yet.').waitFor();
    await using site = await hostile(app.url);
    const page = await signedIn.context().newPage();
    const popup = page.waitForEvent('popup');
    await page.goto(site.url);
    const response = await (
      await popup
    )
      .waitForEvent('load')
      .then((form) => form.textContent('body'));
    expect(response).toMatch(/comes from a page of another site/);
    expect(await page.evaluate(() => (globalThis as unknown as { got: string }).got)).toBe('');
    // The operator's browser sent the requests, with the operator's credentials.
    expect(seen.filter(({ url }) => url.endsWith('/api/pause')).length).toBeGreaterThanOrEqual(3);
    expect(seen.some(({ authorized }) => authorized)).toBe(true);
    expect((await app.inbox.stats()).paused).toEqual([]);
    for (const trouble of browser().troubles()) expect(trouble).toMatch(/CORS policy/);
    expect(app.merchant.log.matching(/: pause/)).toEqual([]);
  });

  it('the console shows that the session has ended, and opens no password prompt until a reload', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await page.clock.install();
    await page.reload();
    await page.getByText('No event received yet.').waitFor();
    app.session.open = false;
    await page.clock.runFor(5_000);
    await page.getByText('You are not signed in any more.').waitFor();
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    await page.clock.runFor(60_000);
    await setHidden(page, false);
    // The browser would report an earlier request before this one.
    await page.evaluate(() => fetch('assets/icon.svg').then(({ status }) => status));
    expect(requested).toEqual([`${app.url}assets/icon.svg`]);
    app.session.open = true;
    await page.getByRole('button', { name: 'Reload and sign in' }).click();
    // The page also shows the first text before the reload.
    await page.getByText('You are not signed in').waitFor({ state: 'detached' });
    await page.getByText('No event received yet.').waitFor();
  });
});
