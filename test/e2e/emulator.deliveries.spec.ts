import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { DeliveryRecord } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { Receiver, until } from './emulator.receiver.js';
import { stageEmulator } from './emulator.stage.js';

const payment = { amount: 1500, accountReference: 'INV-1001', externalReference: 'order-77' };
const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.000Z'));
let receiver: Receiver;
let emulator: PaymentsEmulator;

stageEmulator((stage) => ({ receiver, emulator } = stage), { clock });

function sign(body: Buffer, secret: string): string {
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}

function pay(more: object = {}) {
  const { transactionId } = emulator.createCheckoutInvoice({ ...payment, ...more });
  return emulator.complete(transactionId);
}

const states = (): DeliveryRecord['state'][] => emulator.deliveries().map(({ state }) => state);

describe('a completed transaction', () => {
  it('is told of in the envelope of the service, exactly', async () => {
    const { transaction, event } = pay();
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
    expect(JSON.parse(String(receiver.received[0]?.body))).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      eventType: 'transaction.completed',
      timestamp: new Date(clock.now()).toISOString(),
      data: { transactionId: transaction.transactionId, status: 'complete', ...payment },
      metadata: {},
    });
    expect(receiver.received[0]?.event.id).toBe(event.id);
  });

  it('is told of with the four headers and a signature over the bytes as sent', async () => {
    pay({ externalReference: 'Bestellung "77" – 中文' });
    await emulator.idle();
    const { method, path, headers, body } = receiver.first;
    expect([method, path]).toEqual(['POST', '/webhooks/payments']);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-webhook-event': 'transaction.completed',
      'x-webhook-signature': sign(body, emulator.company.webhookSecret),
      'user-agent': 'PaymentsEmulator-Webhook/1.0',
    });
    expect(headers).not.toHaveProperty('content-encoding');
  });

  it.each(['createCheckoutInvoice', 'createStkPush', 'createPayout'] as const)(
    'is told of the same way after %s',
    async (create) => {
      emulator.complete(emulator[create](payment).transactionId);
      await emulator.idle();
      expect(receiver.received.map(({ event }) => event.eventType)).toEqual([
        'transaction.completed',
      ]);
    },
  );

  it('carries the metadata it was created with', async () => {
    pay({ metadata: { branch: { id: 7 } } });
    await emulator.idle();
    expect(receiver.received[0]?.event).toMatchObject({ metadata: { branch: { id: 7 } } });
  });

  it('can not be completed twice', async () => {
    const { transaction } = pay();
    expect(() => emulator.complete(transaction.transactionId)).toThrow('is complete already');
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
  });
});

describe('a delivery', () => {
  it('is acknowledged by any 2xx, and by nothing else', async () => {
    receiver.answerWith(204, 500, 404, 401);
    for (let payments = 0; payments < 4; payments++) {
      pay();
      await emulator.idle();
    }
    expect(states()).toEqual(['delivered', 'failed', 'failed', 'failed']);
    expect(receiver.received).toHaveLength(4);
  });

  it('follows no redirect', async () => {
    receiver.answer = (_, response) => {
      response.writeHead(307, { location: '/elsewhere' }).end();
    };
    pay();
    await emulator.idle();
    expect(receiver.received.map(({ path }) => path)).toEqual(['/webhooks/payments']);
    expect(emulator.deliveries()[0]).toMatchObject({
      state: 'failed',
      answer: { status: 307 },
      failure: { code: 'redirect' },
    });
  });

  it('fails when the receiver has not answered within 30 seconds', async () => {
    const arrived = new Promise<void>((resolve) => {
      receiver.answer = () => resolve();
    });
    pay();
    await arrived;
    clock.advance(29_999);
    expect(states()).toEqual(['sending']);
    clock.advance(1);
    await emulator.idle();
    expect(emulator.deliveries()[0]).toMatchObject({
      state: 'failed',
      failure: { code: 'timeout' },
      durationMs: 30_000,
    });
  });

  it('fails where nobody listens', async () => {
    const gone = await Receiver.start();
    emulator.setWebhook({ url: gone.url });
    await gone[Symbol.asyncDispose]();
    pay();
    await emulator.idle();
    expect(emulator.deliveries()[0]).toMatchObject({
      state: 'failed',
      failure: { code: 'connection', message: expect.stringContaining('ECONNREFUSED') },
    });
  });

  it('is not tried again unless a schedule says so: the service shows none', async () => {
    receiver.answerWith(500);
    pay();
    await emulator.flush();
    expect(receiver.received).toHaveLength(1);
  });

  it('is tried again by the schedule until it is acknowledged, the same bytes each time', async () => {
    await using patient = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      redeliver: [1_000, 60_000, 3_600_000],
    });
    receiver.answerWith(500, 503, 200);
    patient.complete(patient.createPayout(payment).transactionId);
    await patient.flush();
    expect(
      patient.deliveries().map(({ cause, attempt, state }) => [cause, attempt, state]),
    ).toEqual([
      ['event', 1, 'failed'],
      ['retry', 2, 'failed'],
      ['retry', 3, 'delivered'],
    ]);
    expect(new Set(receiver.received.map(({ body }) => String(body))).size).toBe(1);
  });

  it('waits for its redelivery time', async () => {
    await using patient = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      redeliver: [60_000],
      clock,
    });
    receiver.answerWith(500, 200);
    patient.complete(patient.createPayout(payment).transactionId);
    await until(() => patient.deliveries().length === 2);
    clock.advance(59_999);
    expect(patient.deliveries().map(({ state }) => state)).toEqual(['failed', 'waiting']);
    clock.advance(1);
    await patient.idle();
    expect(patient.deliveries().map(({ state }) => state)).toEqual(['failed', 'delivered']);
    expect(receiver.received).toHaveLength(2);
  });
});

describe("a company's webhook", () => {
  it('gets nothing while it is inactive, and the log says so', async () => {
    emulator.setWebhook({ active: false });
    pay();
    await emulator.idle();
    expect(receiver.received).toEqual([]);
    expect(emulator.deliveries()[0]).toMatchObject({
      state: 'skipped',
      failure: { code: 'inactive' },
    });
    emulator.setWebhook({ active: true });
    pay();
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
  });

  it('signs with the new secret from the rotation on', async () => {
    const before = emulator.company.webhookSecret;
    const { webhookSecret: after } = emulator.rotateWebhookSecret();
    expect(after).not.toBe(before);
    expect(emulator.company.webhookSecret).toBe(after);
    pay();
    await emulator.idle();
    const { headers, body } = receiver.first;
    expect(headers['x-webhook-signature']).toBe(sign(body, after));
  });

  it("is the company's own: URL, secret and active flag", async () => {
    await using theirs = await Receiver.start();
    const other = emulator.createCompany({
      companyId: 'other',
      webhookUrl: theirs.url,
      webhookSecret: 'their-secret',
    });
    pay({ companyId: other.companyId });
    emulator.setWebhook({ companyId: 'other', active: false });
    pay();
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
    emulator.setWebhook({ companyId: 'other', active: true });
    pay({ companyId: other.companyId });
    await emulator.idle();
    const { headers, body } = theirs.first;
    expect(headers['x-webhook-signature']).toBe(sign(body, 'their-secret'));
    expect(receiver.received).toHaveLength(1);
  });

  it('takes plain HTTP on loopback hosts alone', () => {
    expect(() => emulator.setWebhook({ url: 'http://shop.example/' })).toThrow(
      'url must be an https:// URL',
    );
    expect(emulator.setWebhook({ url: 'https://shop.example/' }).webhook.url).toBe(
      'https://shop.example/',
    );
  });
});

describe('the delivery log', () => {
  it('shows what was sent and what was answered', async () => {
    receiver.answer = (_, response) => response.writeHead(202, { 'x-id': '7' }).end('thanks');
    const { event, transaction } = pay();
    await emulator.idle();
    const [delivery] = emulator.deliveries();
    const { headers, body } = receiver.first;
    expect(delivery).toMatchObject({
      companyId: 'default',
      environment: 'sandbox',
      eventId: event.id,
      transactionId: transaction.transactionId,
      cause: 'event',
      attempt: 1,
      state: 'delivered',
      faults: [],
      sentAt: new Date(clock.now()).toISOString(),
      request: {
        url: receiver.url,
        headers: { 'X-Webhook-Signature': headers['x-webhook-signature'] },
        body: String(body),
      },
      answer: { status: 202, headers: { 'x-id': '7' }, body: 'thanks' },
      failure: undefined,
    });
  });

  it('holds no more than it was told to', async () => {
    await using small = await PaymentsEmulator.start({ webhookUrl: receiver.url, logSize: 2 });
    const ids = [1, 2, 3].map(() => small.sendEvent({ eventType: 'x' }).id);
    await small.idle();
    expect(small.deliveries().map(({ eventId }) => eventId)).toEqual(ids.slice(1));
  });

  it('redelivers: the same event and bytes, signed with the secret of today', async () => {
    receiver.answerWith(500, 200);
    pay();
    await emulator.idle();
    const { webhookSecret } = emulator.rotateWebhookSecret();
    const again = await emulator.redeliver(emulator.deliveries()[0]?.id ?? '');
    expect(again).toMatchObject({ cause: 'redelivery', attempt: 2, state: 'delivered' });
    const [first, second] = receiver.received;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['x-webhook-signature']).toBe(sign(receiver.first.body, webhookSecret));
    await expect(emulator.redeliver('none')).rejects.toThrow('there is no delivery none');
  });
});

it('delivers events of any type, those the service does not show included', async () => {
  const event = emulator.sendEvent({ eventType: 'payout.something_new', data: { deep: [1] } });
  await emulator.idle();
  expect(receiver.received[0]?.headers['x-webhook-event']).toBe('payout.something_new');
  expect(JSON.parse(String(receiver.received[0]?.body))).toEqual(event);
});
