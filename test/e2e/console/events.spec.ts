import { expect, it } from '@jest/globals';
import { PaymentInbox } from 'nestjs-payments';
import type { StoredEvent } from 'nestjs-payments';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';
import type { ConsoleApplication } from '../../support/console/console-application.js';
import { company } from '../../support/webhook/webhook-application.js';

const eventPath = (id: string, of = 'default') =>
  `/api/event?${new URLSearchParams({ company: of, id })}`;

async function idsOf(app: ConsoleApplication, query: string): Promise<string[]> {
  const { body, status } = await app.get(`/api/events?${query}`);
  expect(status).toBe(200);
  return (body['events'] as { id: string }[]).map(({ id }) => id);
}

/** Makes the inbox return events with these changes. */
function replaceEvent(app: ConsoleApplication, changes: Partial<StoredEvent>): void {
  const inbox = app.merchant.app.get(PaymentInbox);
  const get = inbox.get.bind(inbox);
  inbox.get = async (...args) => {
    const event = await get(...args);
    return event && { ...event, ...changes };
  };
}

consoleOnEachAdapter((start) => {
  it('the console lists events without their bodies, page by page', async () => {
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

  it('the console shows an event with its payload as text', async () => {
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
    '../../etc/passwd',
    'a b+c%2Fd',
    '?x=1&y#z',
    'ключ-🔑-キー',
    '__proto__',
    '🔑'.repeat(127),
  ])('the console finds, skips and redrives an event with the id %j', async (id) => {
    await using app = await start();
    await app.deliver({ id }, 'dead');
    expect(await app.get(eventPath(id))).toMatchObject({ status: 200, body: { id } });
    const events = [{ company: 'default', id }];
    const skipped = await app.post('skip', { events });
    expect(skipped.body).toEqual({ events: 1, deliveries: 1 });
    expect(await app.states(id)).toEqual({ 'Orders.markPaid': 'skipped' });
    expect((await app.post('redrive', { events })).body).toEqual({ events: 1, deliveries: 1 });
  });

  it('the console shows the right event if two companies have events with the same id', async () => {
    const payments = {
      companies: [
        company('north', 'whsec_aaaaaaaaaaaaaaaa'),
        company('south.2~x', 'whsec_bbbbbbbbbbbbbbbb'),
      ],
    };
    await using app = await start({ payments });
    const { signedWebhook } = await import('../../support/webhook/signed-webhook.js');
    for (const { id, webhookSecret } of payments.companies) {
      await app.merchant.send(
        signedWebhook({ id, webhookSecret }, { id: 'e-1', data: { of: id } }),
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
      body: { error: expect.stringMatching(/has no event with this id/) },
      headers: { 'x-frame-options': 'DENY' },
    });
  });

  it('the console shows a large payload completely, U+FFFD for invalid UTF-8, and null for a pruned payload', async () => {
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

  it('SE-11 the console shows the payload that bodyCodec decodes, or the decoding error', async () => {
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
