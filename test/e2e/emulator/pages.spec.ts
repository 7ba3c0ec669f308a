import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { get, json, put } from '../../support/emulator/api-client.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

const home = new URL('../../../libs/emulator/', import.meta.url);
const payment = { amount: 1500, externalReference: 'order-77' };
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started));

/** Requests a path with the headers of a browser. */
function open(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  return fetch(new URL(path, emulator.baseUrl), { headers: { accept, ...headers } });
}

describe("the emulator's pages", () => {
  let checkout: string;
  beforeEach(() => {
    checkout = emulator.createCheckoutInvoice(payment).checkoutUrl;
  });
  const pages = () => ['/emulator', '/emulator/', '/emulator/stk', checkout];

  it("the emulator's pages are served to browsers at /emulator, and JSON to programs", async () => {
    const page = await open('/emulator');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('vary')).toContain('accept');
    const program = await open('/emulator', { accept: 'application/json' });
    expect(await program.json()).toMatchObject({ emulator: 'payments-emulator' });
  });

  it("the root address redirects to the emulator's pages, with and without a control token", async () => {
    await using remote = await PaymentsEmulator.start({ host: '0.0.0.0' });
    for (const url of [emulator.baseUrl, emulator.productionBaseUrl, remote.baseUrl]) {
      const response = await fetch(url, { redirect: 'manual' });
      expect([response.status, response.headers.get('location')]).toEqual([302, '/emulator']);
    }
    expect((await fetch(remote.baseUrl)).status).toBe(401);
    const slash = await fetch(new URL('/emulator/?tab=faults', emulator.baseUrl), {
      redirect: 'manual',
    });
    expect([slash.status, slash.headers.get('location')]).toEqual([308, '/emulator?tab=faults']);
    expect((await open('/nothing')).status).toBe(404);
  });

  it("the emulator's pages show that this is an emulator and that no money moves", async () => {
    for (const path of pages()) {
      const text = await (await open(path)).text();
      expect(text).toContain('<strong>Emulator.</strong> Not the payments service: no money moves');
    }
  });

  it("the emulator's pages are sent with a content security policy that forbids foreign content and framing", async () => {
    for (const path of pages()) {
      const { headers } = await open(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/^default-src 'none'; /);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("base-uri 'none'");
      expect(policy).toContain("form-action 'self'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('same-origin');
    }
    expect((await open(checkout)).headers.get('content-security-policy')).not.toContain('script');
  });

  it("the emulator's pages allow the import map, their only inline script, by its hash", async () => {
    const page = await open('/emulator');
    const [, map = ''] = /<script type="importmap">(.*?)<\/script>/.exec(await page.text()) ?? [];
    const hash = createHash('sha256').update(map).digest('base64');
    expect(page.headers.get('content-security-policy')).toContain(
      `script-src 'self' 'sha256-${hash}'`,
    );
    const { imports } = JSON.parse(map) as { imports: Record<string, string> };
    for (const path of Object.values(imports)) {
      const file = await open(path);
      expect(file.status).toBe(200);
      expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    }
  });

  it("the emulator's pages can load all files of the folder of the pages, and no other file", async () => {
    const files = (await readdir(new URL('pages/', home))).filter((file) =>
      /\.(js|css)$/.test(file),
    );
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) {
      expect([file, (await open(`/emulator/pages/${file}`)).status]).toEqual([file, 200]);
    }
    for (const path of ['tsconfig.json', 'none.js', '..%2fpackage.json', '%2e%2e/package.json']) {
      expect((await open(`/emulator/pages/${path}`)).status).toBe(404);
    }
  });

  it("the emulator's pages are not served to scripts of other origins", async () => {
    const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' };
    for (const path of [...pages(), '/emulator/pages/emulator-page.js', '/emulator/overview']) {
      const headers = { ...foreign, origin: 'https://evil.example' };
      expect((await open(path, headers)).status).toBe(403);
    }
  });
});

describe('the controls used by the pages', () => {
  it('the controls for the pages of the emulator change one fault at a time; the other faults keep their remaining counts', async () => {
    const url = `${controls}/companies/default/faults`;
    emulator.setFaults({ delivery: { drop: { next: 2 } }, api: { slow: { ms: 1 } } });
    emulator.sendEvent({ eventType: 'x' });
    const response = await put(`${url}/delivery/duplicate`, { copies: 3 });
    const plan = {
      delivery: { drop: { next: 1 }, duplicate: { copies: 3 } },
      api: { slow: { ms: 1 } },
    };
    expect(await json(response)).toEqual(plan);
    expect(emulator.faults()).toEqual(plan);
    await fetch(`${url}/api/slow`, { method: 'DELETE' });
    await fetch(`${url}/delivery/drop`, { method: 'DELETE' });
    expect(emulator.faults()).toEqual({ delivery: { duplicate: { copies: 3 } } });
    for (const path of ['delivery/nope', 'nope/drop', 'delivery/__proto__']) {
      expect((await put(`${url}/${path}`, {})).status).toBe(400);
      expect((await fetch(`${url}/${path}`, { method: 'DELETE' })).status).toBe(400);
    }
    expect((await put(`${url}/api/slow`, { ms: -1 })).status).toBe(400);
    expect((await put(`${controls}/companies/none/faults/api/slow`, { ms: 1 })).status).toBe(404);
    expect(emulator.faults()).toEqual({ delivery: { duplicate: { copies: 3 } } });
  });

  it('the controls for the pages of the emulator return pages of the log, newest first, without bodies or headers', async () => {
    emulator.createCompany({ companyId: 'other', webhookUrl: receiver.url });
    for (const eventType of ['a.one', 'a.two', 'b.three']) {
      emulator.sendEvent({ eventType });
      await emulator.idle();
    }
    const paid = emulator.createPayout({ ...payment, companyId: 'other' });
    emulator.complete(paid.transactionId);
    await emulator.idle();
    const page = async (query: string) => {
      const response = await get(`${controls}/deliveries/search?${query}`);
      const { deliveries, more } = (await response.json()) as {
        deliveries: { id: string; eventType: string }[];
        more: boolean;
      };
      return { types: deliveries.map(({ eventType }) => eventType), more, deliveries };
    };
    const first = await page('limit=2');
    expect(first).toMatchObject({ types: ['transaction.completed', 'b.three'], more: true });
    expect(first.deliveries[0]).toMatchObject({ url: receiver.url, status: 200 });
    expect(first.deliveries[0]).not.toHaveProperty('request');
    expect(first.deliveries[0]).not.toHaveProperty('response');
    const before = first.deliveries.at(-1)?.id;
    expect(await page(`limit=2&before=${before}`)).toMatchObject({
      types: ['a.two', 'a.one'],
      more: false,
    });
    expect((await page('before=gone')).types).toEqual([]);
    expect((await page('search=A.')).types).toEqual(['a.two', 'a.one']);
    expect((await page('companyId=other')).types).toEqual(['transaction.completed']);
    const part = paid.transactionId.slice(0, 8);
    expect((await page(`search=${part}`)).types).toEqual(['transaction.completed']);
    expect((await page('state=failed')).types).toEqual([]);
    expect((await get(`${controls}/deliveries/search?limit=201`)).status).toBe(400);
  });

  it.each([7, null, { id: 'x' }])(
    'the controls for the pages of the emulator can search the log even if the transactionId of an event is %j',
    async (transactionId) => {
      emulator.sendEvent({ eventType: 'odd', data: { transactionId } });
      await emulator.idle();
      for (const [search, found] of [
        ['odd', 1],
        ['nothing', 0],
      ] as const) {
        const response = await get(`${controls}/deliveries/search?search=${search}`);
        expect(response.status).toBe(200);
        expect(((await response.json()) as { deliveries: object[] }).deliveries).toHaveLength(
          found,
        );
      }
    },
  );

  it('the controls for the pages of the emulator return the state of the emulator, but none of its secrets', async () => {
    emulator.setFaults({ api: { truncate: {} } });
    emulator.sendEvent({ eventType: 'x' });
    await emulator.idle();
    const response = await get(`${controls}/overview`);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({
      environment: 'sandbox',
      currency: 'KES',
      hosts: { sandbox: emulator.baseUrl, production: emulator.productionBaseUrl },
      log: { size: 1000, counts: { delivered: 1 } },
      companyCount: 1,
      companies: [
        {
          companyId: 'default',
          webhook: { url: receiver.url, active: true },
          faults: { api: { truncate: {} } },
        },
      ],
    });
    const { clientSecret, webhookSecret, production } = emulator.company;
    for (const secret of [clientSecret, webhookSecret, production.clientSecret, emulator.seed]) {
      expect(text).not.toContain(secret);
    }
  });

  it.each(['', '/overview', '/companies', '/companies/default', '/companies/none', '/deliveries'])(
    'the responses to the pages of the emulator have no-store, nosniff and same-origin headers: /emulator%s',
    async (path) => {
      const { headers } = await get(`${controls}${path}`);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    },
  );

  it('the controls for the pages of the emulator return at most 200 companies', async () => {
    for (let number = 0; number < 205; number++)
      emulator.createCompany({ companyId: `c${number}` });
    const overview = (await (await get(`${controls}/overview`)).json()) as {
      companyCount: number;
      companies: { companyId: string }[];
    };
    expect(overview.companyCount).toBe(206);
    expect(overview.companies).toHaveLength(200);
    expect(overview.companies[0]?.companyId).toBe('default');
    expect(overview.companies.at(-1)?.companyId).toBe('c204');
  });
});
