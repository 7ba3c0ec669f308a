import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { get, json, put } from '../../support/emulator/api-client.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

const payment = { amount: 1500, externalReference: 'order-77' };
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started));

describe('the controls used by the pages', () => {
  it('the controls of the pages change one fault at a time; the others keep their remaining counts', async () => {
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

  it('the controls of the pages return pages of the log, newest first, without bodies or headers', async () => {
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
    "the controls of the pages search the log if an event's transactionId is %j",
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

  it('the controls of the pages return the state of the emulator without a secret', async () => {
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
    'the controls of the pages are sent with no-store, nosniff and same-origin headers: /emulator%s',
    async (path) => {
      const { headers } = await get(`${controls}${path}`);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    },
  );

  it("the controls of the pages return the emulator's clock and the real time", async () => {
    const clock = new ManualClock(Date.parse('2026-03-01T08:00:00Z'));
    await using other = await PaymentsEmulator.start({ clock });
    const before = Date.now();
    const { now, realTime } = await json(get(`${other.baseUrl}/emulator/overview`));
    expect(now).toBe('2026-03-01T08:00:00.000Z');
    expect(Date.parse(String(realTime))).toBeGreaterThanOrEqual(before);
    expect(Date.parse(String(realTime))).toBeLessThanOrEqual(Date.now());
  });

  it('the controls of the pages return reference and amount of a delivery and of its redelivery', async () => {
    const paid = emulator.createPayout({ ...payment, amount: 12.5 });
    emulator.complete(paid.transactionId);
    await emulator.idle();
    const [first] = emulator.deliveries();
    await emulator.redeliver(first!.id);
    const response = await get(`${controls}/deliveries/search?search=ORDER-7`);
    const { deliveries } = (await response.json()) as { deliveries: object[] };
    expect(deliveries).toMatchObject([
      { cause: 'redelivery', attempt: 2, externalReference: 'order-77', amount: 12.5 },
      { id: first!.id, cause: 'event', externalReference: 'order-77', amount: 12.5 },
    ]);
  });

  it('the controls of the pages return at most 200 companies', async () => {
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
