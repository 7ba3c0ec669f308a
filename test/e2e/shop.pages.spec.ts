import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { settingsFor, Shop } from '../support/shop.client.js';
import { insist, ShopEvents } from '../support/shop.events.js';

jest.setTimeout(60_000);

const CONSOLE = { SHOP_CONSOLE_PASSWORD: 'correct horse battery' };
const FORM = 'application/x-www-form-urlencoded';

describe.each(['express', 'fastify'])('the pages of the shop on %s', (adapter) => {
  let emulator: PaymentsEmulator;
  let shop: Shop;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'pages' });
    shop = await Shop.start({ ...settingsFor(emulator), ...CONSOLE, SHOP_ADAPTER: adapter });
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

  const ticketOf = ({ text }: { text: string }) => /name="ticket" value="(\w+)"/.exec(text)![1]!;

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

  it.each(['/', '/books', '/o/nobody', '/o/known'])(
    '%s may run and load nothing foreign',
    async (path) => {
      await shop.place('known', 5);
      const { status, headers } = await page(path);
      expect(status).toBe(path === '/o/nobody' ? 404 : 200);
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

  it('serves what the pages name, says when it is unchanged, and nothing else', async () => {
    const { text } = await page('/books');
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

  it('orders once for a form that is sent twice at once, and anew from a shelf that is loaded anew', async () => {
    const form = `product=milk&ticket=${ticketOf(await page('/'))}`;
    const [first, second] = await Promise.all([buy(form), buy(form)]);
    expect([first.status, second.status]).toEqual([303, 303]);
    const address = first.headers.get('location')!;
    expect(second.headers.get('location')).toBe(address);
    expect(address).toMatch(/^\/o\/milk-[0-9a-z]{12}$/);
    const reference = address.slice(3);
    expect(await shop.order(reference)).toMatchObject({ amount: 65.1, status: 'pending' });
    const invoices = emulator.transactions().filter((one) => one.externalReference === reference);
    expect(invoices).toHaveLength(1);
    const other = await buy(`product=milk&ticket=${ticketOf(await page('/'))}`);
    expect(other.headers.get('location')).not.toBe(address);
  });

  it.each([
    ['sec-fetch-site', { 'sec-fetch-site': 'cross-site' }],
    ['sec-fetch-site', { 'sec-fetch-site': 'same-site' }],
    ['origin', { origin: 'http://evil.example' }],
    ['origin', { origin: 'null' }],
  ])("takes no order from another site's page, by %s %j", async (_, headers) => {
    const ticket = ticketOf(await page('/'));
    const answer = await buy(`product=milk&ticket=${ticket}`, headers);
    expect(answer.status).toBe(403);
    expect((await shop.get(`/orders/milk-${ticket}`)).status).toBe(404);
    const own = await buy(`product=milk&ticket=${ticket}`, { origin: shop.url });
    expect(own.status).toBe(303);
  });

  it.each([
    'product=gold&ticket=abcdefghijkl',
    'product=milk&ticket=..',
    'product=milk',
    'ticket=abcdefghijkl',
  ])('refuses the form %s', async (form) => expect((await buy(form)).status).toBe(400));

  it('shows a reference for what it is, text', async () => {
    const { status, text } = await page(`/o/${encodeURIComponent('<script>alert(1)</script>')}`);
    expect(status).toBe(404);
    expect(text).toContain('&#60;script&#62;alert(1)&#60;/script&#62;');
    expect(text).not.toContain('<script>alert');
  });

  it('tells how an order stands at once, and whenever it changes, and nothing twice', async () => {
    await shop.place('followed', 30);
    await shop.place('another', 30);
    await using events = await ShopEvents.open(`${shop.url}/orders/followed/events`);
    expect(await events.next()).toMatchObject({ reference: 'followed', status: 'pending' });
    pay('another', 30);
    pay('followed', 10);
    expect(await events.next()).toMatchObject({ status: 'pending', amountPaid: 10 });
    pay('followed', 20);
    const paid = await events.next();
    expect(paid).toEqual(await shop.order('followed'));
    expect(paid).toMatchObject({ status: 'paid' });
    await using late = await ShopEvents.open(`${shop.url}/orders/followed/events`);
    expect(await late.next()).toEqual(paid);
  });

  it('follows no order that is not there', async () => {
    expect((await shop.get('/orders/nobody/events')).status).toBe(404);
  });

  it('adds up the ledger, tells whenever something is booked, and pages it, newest first', async () => {
    await using events = await ShopEvents.open(`${shop.url}/books/events`);
    const before = await events.next<{ payments: number; unmatched: { payments: number } }>();
    await shop.place('paged', 0.3);
    for (const amount of [0.1, 0.2]) {
      pay('paged', amount);
      await events.next();
    }
    pay('paged-by-nobody', 7.5);
    const after = await events.next<typeof before>();
    expect(after.payments).toBe(before.payments + 3);
    expect(after.unmatched.payments).toBe(before.unmatched.payments + 1);
    const ledger = (await shop.ledger()).toReversed();
    const total = Math.round(ledger.reduce((sum, { amount }) => sum + amount * 100, 0)) / 100;
    expect(after).toMatchObject({ payments: ledger.length, amount: total });

    const read = [];
    let next: string | null = '';
    while (next !== null) {
      const query: string = next === '' ? '' : `&before=${next}`;
      const { body } = await shop.get<{ entries: unknown[]; next: string | null }>(
        `/books/entries?limit=2${query}`,
      );
      expect(body.entries.length).toBeLessThanOrEqual(2);
      read.push(...body.entries);
      next = body.next;
    }
    expect(read).toEqual(ledger);
  });

  it.each(['limit=0', 'limit=201', 'limit=a', 'before=a', 'before=-1', 'other=1'])(
    'refuses to page the ledger by %s',
    async (query) => expect((await shop.get(`/books/entries?${query}`)).status).toBe(400),
  );

  it('has the console for whoever knows the password', async () => {
    const stranger = await page('/console');
    expect(stranger.status).toBe(401);
    const authorization = `Basic ${btoa(`operator:${CONSOLE.SHOP_CONSOLE_PASSWORD}`)}`;
    expect((await fetch(`${shop.url}/console`, { headers: { authorization } })).status).toBe(200);
  });
});

describe.each(['express', 'fastify'])('a shop on %s that closes', (adapter) => {
  it('ends the streams of its pages, and waits for none that comes back', async () => {
    await using emulator = await PaymentsEmulator.start();
    await using shop = await Shop.start({ ...settingsFor(emulator), SHOP_ADAPTER: adapter });
    await shop.place('open', 5);
    const streams = ['/orders/open/events', '/orders/open/events', '/books/events'];
    const events = await Promise.all(streams.map((path) => ShopEvents.open(shop.url + path)));
    for (const one of events) await one.next();
    // A browser asks for its stream again over the connection it has, and again.
    const insisting = new AbortController();
    const asking = insist(`${shop.url}/books/events`, insisting.signal);
    expect(await shop.process.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    insisting.abort();
    await asking;
    for (const one of events) await one.ended;
  });
});

it('has no console without a password', async () => {
  await using emulator = await PaymentsEmulator.start();
  await using shop = await Shop.start({ ...settingsFor(emulator), SHOP_CONSOLE_PASSWORD: '' });
  expect((await shop.get('/console')).status).toBe(404);
});

it('logs without colours where its output is no terminal', async () => {
  await using emulator = await PaymentsEmulator.start();
  await using shop = await Shop.start({ ...settingsFor(emulator), NO_COLOR: '' });
  expect(shop.process.out.join('\n')).toContain('Listening');
  expect(shop.process.out.join('\n')).not.toContain('\u001B');
});
