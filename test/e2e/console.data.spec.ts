import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import type { StoredEvent } from 'nestjs-payments';
import { consoleOnEachAdapter } from '../support/console.application.js';
import type { ConsoleApplication } from '../support/console.application.js';
import { turns } from '../support/fake.runtime.js';
import { company } from '../support/webhook.application.js';

@Injectable()
class Receipts {
  @OnPaymentEvent('transaction.completed', { name: 'Receipts.send' })
  send(): void {}
}

const eventPath = (id: string, of = 'default') =>
  `/api/event?${new URLSearchParams({ company: of, id })}`;

async function idsOf(app: ConsoleApplication, query: string): Promise<string[]> {
  const { body, status } = await app.get(`/api/events?${query}`);
  expect(status).toBe(200);
  return (body['events'] as { id: string }[]).map(({ id }) => id);
}

/** Has the inbox answer `get` with what differs. */
function replaceEvent(app: ConsoleApplication, changes: Partial<StoredEvent>): void {
  const inbox = app.merchant.app.get(PaymentInbox);
  const get = inbox.get.bind(inbox);
  inbox.get = async (...args) => {
    const event = await get(...args);
    return event && { ...event, ...changes };
  };
}

consoleOnEachAdapter((start) => {
  it('shows the overview', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' });
    await app.deliver({ id: 'e-2' }, 'dead');
    await app.deliver({ id: 'e-3', eventType: 'nobody.knows' });
    await app.post('pause', { handler: 'Orders.markPaid' });
    const handler = 'Orders.markPaid';
    const { body, headers } = await app.get('/api/overview?minutes=3');
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    expect(body).toMatchObject({
      now: new Date(app.runtime.now()).toISOString(),
      who: 'ann',
      capabilities: { durable: false, transactional: false },
      handlers: [{ name: handler, here: true, lastSeenAt: expect.any(String), activity: null }],
      stats: {
        deliveries: [{ handler, state: 'dead', count: 1, more: false }],
        unhandled: { count: 1, more: false },
        oldestPendingMs: null,
        paused: [handler],
      },
      lastReceivedAt: new Date(app.runtime.now()).toISOString(),
      // No minute is closed yet.
      activity: [],
    });
  });

  it('IN-38 shows closed minutes, and sums of each handler over the minutes shown', async () => {
    await using app = await start({ providers: [Receipts] });
    expect((await app.get('/api/overview')).body).toMatchObject({ lastReceivedAt: null });
    await app.deliver({ id: 'e-1' });
    await app.deliver({ id: 'e-2' }, 'dead');
    app.runtime.advance(60_000);
    await app.deliver({ id: 'e-3' });
    for (let second = 0; second < 270; second += 10) {
      app.runtime.advance(10_000);
      await turns(10);
    }
    type Counts = { received: number; done: number; failed: number; dead: number };
    const overview = async (minutes: number) => {
      const { body } = await app.get(`/api/overview?minutes=${minutes}`);
      const rows = body['handlers'] as { name: string; activity: Counts }[];
      return {
        activity: body['activity'] as (Counts & { startsAt: string })[],
        handlers: Object.fromEntries(rows.map(({ name, activity }) => [name, activity])),
      };
    };
    const { activity, handlers } = await overview(60);
    const busy = activity.filter(({ received }) => received > 0);
    expect(busy).toMatchObject([
      { received: 2, done: 3, failed: 1, dead: 1, p50Ms: 0, p95Ms: 0 },
      { received: 1, done: 2, failed: 0, dead: 0 },
    ]);
    expect(Date.parse(busy[1]!.startsAt) - Date.parse(busy[0]!.startsAt)).toBe(60_000);
    expect(handlers).toMatchObject({
      'Orders.markPaid': { received: 3, done: 2, failed: 1, dead: 1, p95Ms: 0 },
      'Receipts.send': { received: 3, done: 3, failed: 0, dead: 0 },
    });
    const quiet = await overview(1);
    expect(quiet.activity).toHaveLength(1);
    expect(quiet.handlers['Receipts.send']).toMatchObject({ received: 0, done: 0, p95Ms: null });
  });

  it('asks the inbox once a second, however many consoles are open, and at once after an action', async () => {
    await using app = await start();
    const inbox = app.merchant.app.get(PaymentInbox);
    const stats = inbox.stats.bind(inbox);
    let asked = 0;
    inbox.stats = async () => {
      asked += 1;
      return stats();
    };
    const consoles = Array.from({ length: 20 }, (_, i) =>
      app.get(`/api/overview?minutes=${i % 2 ? 60 : 1440}`),
    );
    for (const { status } of await Promise.all(consoles)) expect(status).toBe(200);
    app.runtime.advance(999);
    await app.get('/api/overview');
    expect(asked).toBe(1);
    app.runtime.advance(1);
    await app.get('/api/overview');
    expect(asked).toBe(2);
    await app.post('pause', { handler: '*' });
    const { body } = await app.get('/api/overview');
    expect(body).toMatchObject({ stats: { paused: ['*'] } });
  });

  it('lists events without their bodies, page by page', async () => {
    await using app = await start();
    for (const id of ['evt-1', 'evt-2', 'evt-3']) {
      await app.deliver({ id }, id === 'evt-2' ? 'dead' : undefined);
      app.runtime.advance(60_000);
    }
    expect(await idsOf(app, '')).toEqual(['evt-3', 'evt-2', 'evt-1']);
    expect(await idsOf(app, 'order=oldest&search=&state=&handler=')).toEqual([
      'evt-1',
      'evt-2',
      'evt-3',
    ]);
    const first = await app.get('/api/events?limit=2');
    const after = first.body['next'] as string;
    expect(await idsOf(app, `limit=2&after=${after}`)).toEqual(['evt-1']);
    expect(await idsOf(app, 'state=dead&handler=Orders.markPaid&company=default')).toEqual([
      'evt-2',
    ]);
    expect(await idsOf(app, 'search=EVT-3&eventType=transaction.completed')).toEqual([]);
    expect(await idsOf(app, 'search=evt-3&eventType=transaction.completed')).toEqual(['evt-3']);
    const second = new Date(app.runtime.now() - 120_000).toISOString();
    expect(await idsOf(app, `from=${second}`)).toEqual(['evt-3', 'evt-2']);
    expect(await idsOf(app, `to=${second}`)).toEqual(['evt-1']);
    const [event] = first.body['events'] as object[];
    expect(event).toMatchObject({
      id: 'evt-3',
      company: 'default',
      deliveries: [{ state: 'done' }],
    });
    expect(event).not.toHaveProperty('raw');
    expect(event).not.toHaveProperty('payload');
  });

  it.each([
    ['/api/overview?minutes=0', '"minutes" must be a whole number from 1 to 1440.'],
    ['/api/overview?minutes=1441', '"minutes"'],
    ['/api/overview?minutes=1e3', '"minutes"'],
    ['/api/overview?minute=5', 'There is no "minute" in the query. There may be: minutes.'],
    ['/api/events?limit=0', '"limit" must be a whole number from 1 to 200.'],
    ['/api/events?limit=201', '"limit"'],
    ['/api/events?limit=-1', '"limit"'],
    ['/api/events?limit=1.5', '"limit"'],
    ['/api/events?state=a&state=b', '"state" stands more than once in the query: give it once.'],
    ['/api/events?state[]=dead', 'There is no "state[]" in the query.'],
    ['/api/events?state=deadly', '"state" must be one of pending, running'],
    ['/api/events?order=up', '"order" must be one of newest, oldest.'],
    ['/api/events?from=yesterday', '"from" must be a time such as 2026-'],
    ['/api/events?from=2026-02-30', '"from"'],
    ['/api/events?from=2026-11-20T08:00', '"from"'],
    ['/api/events?to=0026-11-20', '"to"'],
    ['/api/events?to=1763625600000', '"to"'],
    ['/api/events?search=%00', '"search" must be a text of 1 to 255 characters, none a control'],
    [`/api/events?search=${'x'.repeat(256)}`, '"search"'],
    ['/api/events?company=a%20b', '"company" must be of the form'],
    ['/api/events?after=%27;', '"after"'],
    ['/api/event', 'The query names no event: it needs "company" and "id".'],
    ['/api/event?id=e-1', 'names no event'],
    ['/api/event?company=default&id=a%0ab', '"id"'],
  ])('refuses %s with a clear message', async (path, message) => {
    await using app = await start();
    expect(await app.get(path)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining(message) },
      headers: { 'cache-control': 'no-store', 'x-frame-options': 'DENY' },
    });
  });

  it('shows an event with its payload as text', async () => {
    await using app = await start();
    const markup = '</script><script>alert(1)</script>';
    await app.deliver({ id: 'e-1', data: { transactionId: 't-1', note: markup } }, 'dead');
    const { status, body, text } = await app.get(eventPath('e-1'));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      company: 'default',
      id: 'e-1',
      eventType: 'transaction.completed',
      orderingKey: 't-1',
      headers: { 'content-type': 'application/json' },
      deliveries: [
        {
          handler: 'Orders.markPaid',
          state: 'dead',
          attempts: 1,
          lastError: expect.stringContaining('no such order'),
          history: [{ attempt: 1, outcome: 'failed', error: expect.stringContaining('no such') }],
        },
      ],
    });
    expect(JSON.parse(body['payload'] as string)).toMatchObject({ data: { note: markup } });
    expect(text.toLowerCase()).not.toContain('signature');
    expect(body).not.toHaveProperty('raw');
  });

  it.each([
    'a/b',
    '/',
    '.',
    '..',
    '../../etc/passwd',
    'a b+c%2Fd',
    '%',
    '?x=1&y#z',
    'ключ-🔑-キー',
    '"><script>alert(1)</script>',
    "'; DROP TABLE x; --",
    '__proto__',
    'x'.repeat(255),
    '🔑'.repeat(127),
  ])('finds, redrives and skips an event of id %j', async (id) => {
    await using app = await start();
    await app.deliver({ id }, 'dead');
    expect(await app.get(eventPath(id))).toMatchObject({ status: 200, body: { id } });
    const events = [{ company: 'default', id }];
    const skipped = await app.post('skip', { events });
    expect(skipped.body).toEqual({ events: 1, deliveries: 1 });
    expect(await app.states(id)).toEqual({ 'Orders.markPaid': 'skipped' });
    expect((await app.post('redrive', { events })).body).toEqual({ events: 1, deliveries: 1 });
  });

  it('keeps the events of companies apart', async () => {
    const payments = {
      companies: [
        company('north', 'whsec_aaaaaaaaaaaaaaaa'),
        company('south.2~x', 'whsec_bbbbbbbbbbbbbbbb'),
      ],
    };
    await using app = await start({ payments });
    const { signedDelivery } = await import('../support/signed-delivery.js');
    for (const { id, webhookSecret } of payments.companies) {
      await app.merchant.send(
        signedDelivery({ id, webhookSecret }, { id: 'e-1', data: { of: id } }),
      );
    }
    for (const { id } of payments.companies) {
      const { body } = await app.get(eventPath('e-1', id));
      expect(body).toMatchObject({ company: id, payload: expect.stringContaining(`"${id}"`) });
    }
    const { body } = await app.post('skip', {
      events: payments.companies.map(({ id }) => ({ company: id, id: 'e-1' })),
    });
    expect(body).toEqual({ events: 0, deliveries: 0 });
    expect(await app.get(eventPath('e-1', 'east'))).toMatchObject({
      status: 404,
      body: { error: expect.stringMatching(/No such event/) },
      headers: { 'x-frame-options': 'DENY' },
    });
  });

  it('shows a large payload whole, bytes that are no UTF-8, and none where it was pruned', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1', data: { pad: 'ü'.repeat(500_000) } });
    const large = JSON.parse((await app.get(eventPath('e-1'))).body['payload'] as string) as {
      data: { pad: string };
    };
    expect(large.data.pad).toBe('ü'.repeat(500_000));
    replaceEvent(app, { raw: Buffer.from([0xef, 0xbb, 0xbf, 0x22, 0xff, 0xc3, 0x28, 0x22]) });
    expect((await app.get(eventPath('e-1'))).body['payload']).toBe('\ufeff"\ufffd\ufffd("');
    replaceEvent(app, { raw: null });
    expect((await app.get(eventPath('e-1'))).body['payload']).toBeNull();
  });

  it('SE-11 shows the payload that bodyCodec decodes, or why it cannot', async () => {
    const codec = { key: 1, reverse: (bytes: Buffer) => Buffer.from(bytes.toReversed()) };
    await using app = await start({
      payments: {
        bodyCodec: {
          encode: (body) => Buffer.of(codec.key, ...codec.reverse(body)),
          decode: (stored) => {
            if (stored[0] !== codec.key) throw new Error('the key is missing');
            return codec.reverse(stored.subarray(1));
          },
        },
      },
    });
    await app.deliver({ id: 'e-1', data: { amount: 1 } });
    const decoded = await app.get(eventPath('e-1'));
    expect(decoded.body['payload']).toContain('"amount":1');
    expect(decoded.body['bodyError']).toBeUndefined();
    codec.key = 2;
    await app.deliver({ id: 'e-2' });
    expect(await app.get(eventPath('e-1'))).toMatchObject({
      status: 200,
      body: {
        payload: null,
        bodyError: expect.stringMatching(/event e-1 .*the key is missing/),
        deliveries: [{ state: 'done' }],
      },
    });
    expect((await app.get(eventPath('e-2'))).body['payload']).toContain('"e-2"');
    expect(await idsOf(app, '')).toHaveLength(2);
  });
});
