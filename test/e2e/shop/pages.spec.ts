import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../../support/time/waiting.js';
import { RunningShop, settingsFor } from '../../support/shop/running-shop.js';
import { requestRepeatedly } from '../../support/shop/shop-pages.js';

const CONSOLE = { SHOP_CONSOLE_PASSWORD: 'correct horse battery' };
const FORM = 'application/x-www-form-urlencoded';

describe.each(['express', 'fastify'])('the pages of the shop on %s', (adapter) => {
  let emulator: PaymentsEmulator;
  let shop: RunningShop;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'pages' });
    shop = await RunningShop.start({ ...settingsFor(emulator), ...CONSOLE, SHOP_ADAPTER: adapter });
    emulator.setWebhook({ url: shop.webhookUrl });
  });
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await emulator?.close();
  });

  const page = async (path: string) => {
    const response = await fetch(shop.url + path);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  const keyOf = ({ text }: { text: string }) =>
    /name="idempotencyKey" value="(\w+)"/.exec(text)![1]!;

  function buy(body: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${shop.url}/buy`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': FORM, ...headers },
      body,
    });
  }

  function pay(externalReference: string, amount: number): void {
    emulator.complete(emulator.createStkPush({ amount, externalReference }).transactionId);
  }

  it.each(['/', '/ledger', '/orders/nobody', '/orders/known'])(
    'the page %s loads and runs only files of the shop',
    async (path) => {
      await shop.createOrder('known', 5);
      const { status, headers } = await page(path);
      expect(status).toBe(path === '/orders/nobody' ? 404 : 200);
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
      const policy = headers.get('content-security-policy')!.split('; ');
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy.find((part) => part.startsWith('script-src'))).toMatch(
        /^script-src 'self' 'sha256-[\w+/]{43}='$/,
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
    },
  );

  it('the shop serves the assets of the pages, responds with 304 if they are unchanged, and serves no other file', async () => {
    const { text } = await page('/ledger');
    const names = text.match(/\/assets\/[\w.-]+/g)!;
    expect(new Set(names).size).toBeGreaterThan(5);
    for (const name of names) {
      const { status, headers } = await page(name);
      expect([name, status]).toEqual([name, 200]);
      const etag = { 'if-none-match': headers.get('etag')! };
      expect((await fetch(shop.url + name, { headers: etag })).status).toBe(304);
    }
    for (const name of ['..%2Fpackage.json', '%2e%2e%2fpackage.json', 'tsconfig.json', '']) {
      expect((await page(`/assets/${name}`)).status).toBe(404);
    }
  });

  it('the shop creates one order for a form that is sent twice, and another order after a reload of the page', async () => {
    const form = `product=milk&idempotencyKey=${keyOf(await page('/'))}`;
    const [first, second] = await Promise.all([buy(form), buy(form)]);
    expect([first.status, second.status]).toEqual([303, 303]);
    const address = first.headers.get('location')!;
    expect(second.headers.get('location')).toBe(address);
    expect(address).toMatch(/^\/orders\/milk-[0-9a-z]{12}$/);
    const reference = address.slice('/orders/'.length);
    expect(await shop.order(reference)).toMatchObject({ amount: 65.1, status: 'pending' });
    const invoices = emulator.transactions().filter((one) => one.externalReference === reference);
    expect(invoices).toHaveLength(1);
    const other = await buy(`product=milk&idempotencyKey=${keyOf(await page('/'))}`);
    expect(other.headers.get('location')).not.toBe(address);
  });

  it.each([
    ['sec-fetch-site', { 'sec-fetch-site': 'cross-site' }],
    ['sec-fetch-site', { 'sec-fetch-site': 'same-site' }],
    ['origin', { origin: 'http://evil.example' }],
    ['origin', { origin: 'null' }],
  ])('the shop rejects a form of another site because of %s: %j', async (_, headers) => {
    const key = keyOf(await page('/'));
    const response = await buy(`product=milk&idempotencyKey=${key}`, headers);
    expect(response.status).toBe(403);
    expect((await shop.get(`/api/orders/milk-${key}`)).status).toBe(404);
    const own = await buy(`product=milk&idempotencyKey=${key}`, { origin: shop.url });
    expect(own.status).toBe(303);
  });

  it.each([
    'product=gold&idempotencyKey=abcdefghijkl',
    'product=milk&idempotencyKey=..',
    'product=milk',
    'idempotencyKey=abcdefghijkl',
  ])('the shop rejects the form %s', async (form) => expect((await buy(form)).status).toBe(400));

  it('the shop returns the totals of the ledger, and the ledger in pages, newest first', async () => {
    const totals = async () =>
      (await shop.get<{ payments: number; unmatched: { payments: number } }>('/api/ledger/totals'))
        .body;
    const before = await totals();
    await shop.createOrder('paged', 0.3);
    for (const amount of [0.1, 0.2]) pay('paged', amount);
    pay('paged-by-nobody', 7.5);
    await emulator.idle();
    await eventually(async () => expect((await totals()).payments).toBe(before.payments + 3));
    const after = await totals();
    expect(after.unmatched.payments).toBe(before.unmatched.payments + 1);
    const ledger = (await shop.ledger()).toReversed();
    const total = Math.round(ledger.reduce((sum, { amount }) => sum + amount * 100, 0)) / 100;
    expect(after).toMatchObject({ payments: ledger.length, amount: total });

    const read = [];
    let next: string | null = '';
    while (next !== null) {
      const query: string = next === '' ? '' : `&before=${next}`;
      const { body } = await shop.get<{ entries: unknown[]; next: string | null }>(
        `/api/ledger/page?limit=2${query}`,
      );
      expect(body.entries.length).toBeLessThanOrEqual(2);
      read.push(...body.entries);
      next = body.next;
    }
    expect(read).toEqual(ledger);
  });

  it.each(['limit=0', 'limit=201', 'limit=a', 'before=a', 'before=-1', 'other=1'])(
    'the shop rejects the query %s of a ledger page',
    async (query) => expect((await shop.get(`/api/ledger/page?${query}`)).status).toBe(400),
  );

  it('the shop protects the console with the password', async () => {
    const anonymous = await page('/console');
    expect(anonymous.status).toBe(401);
    const authorization = `Basic ${btoa(`operator:${CONSOLE.SHOP_CONSOLE_PASSWORD}`)}`;
    expect((await fetch(`${shop.url}/console`, { headers: { authorization } })).status).toBe(200);
  });
});

describe.each(['express', 'fastify'])('a closing shop on %s', (adapter) => {
  it('a closing shop does not wait for pages that send requests', async () => {
    await using emulator = await PaymentsEmulator.start();
    await using shop = await RunningShop.start({ ...settingsFor(emulator), SHOP_ADAPTER: adapter });
    const stop = new AbortController();
    const requests = requestRepeatedly(`${shop.url}/api/ledger/page`, stop.signal);
    expect(await shop.process.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    stop.abort();
    await requests;
  });
});

it('the shop has no console without a password, and logs without colours if its output is not a terminal', async () => {
  await using emulator = await PaymentsEmulator.start();
  const empty = { SHOP_CONSOLE_PASSWORD: '', NO_COLOR: '' };
  await using shop = await RunningShop.start({ ...settingsFor(emulator), ...empty });
  expect((await shop.get('/console')).status).toBe(404);
  expect(shop.process.out.join('\n')).toContain('Listening');
  expect(shop.process.out.join('\n')).not.toContain('\u001B');
});
