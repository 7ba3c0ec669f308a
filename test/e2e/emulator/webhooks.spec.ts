import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import { signatureOf, WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const payment = { amount: 1500, externalReference: 'order-77' };
const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.000Z'));
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started), { clock });

function pay(more: object = {}) {
  const { transactionId } = emulator.createCheckoutInvoice({ ...payment, ...more });
  return emulator.complete(transactionId);
}

describe("a company's webhook", () => {
  it("a company's webhook receives nothing while it is inactive; the attempts are logged as skipped", async () => {
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

  it('the webhook of each company has its own URL, secret and active flag', async () => {
    await using theirs = await WebhookReceiver.start();
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
    expect(headers['x-webhook-signature']).toBe(signatureOf(body, 'their-secret'));
    expect(receiver.received).toHaveLength(1);
  });
});

describe('the delivery log', () => {
  it('the delivery log contains the request and the response', async () => {
    receiver.respond = (_, response) => response.writeHead(202, { 'x-id': '7' }).end('thanks');
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
      response: { status: 202, headers: { 'x-id': '7' }, body: 'thanks' },
      failure: undefined,
    });
  });

  it('the delivery log keeps at most logSize attempts', async () => {
    await using small = await PaymentsEmulator.start({ webhookUrl: receiver.url, logSize: 2 });
    const ids = [1, 2, 3].map(() => small.sendEvent({ eventType: 'x' }).id);
    await small.idle();
    expect(small.deliveries().map(({ eventId }) => eventId)).toEqual(ids.slice(1));
  });

  it('the delivery log redelivers the same event and bytes, signed with the current secret', async () => {
    receiver.respondWith(500, 200);
    pay();
    await emulator.idle();
    const { webhookSecret } = emulator.rotateWebhookSecret();
    const again = await emulator.redeliver(emulator.deliveries()[0]?.id ?? '');
    expect(again).toMatchObject({ cause: 'redelivery', attempt: 2, state: 'delivered' });
    const [first, second] = receiver.received;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['x-webhook-signature']).toBe(
      signatureOf(receiver.first.body, webhookSecret),
    );
    await expect(emulator.redeliver('none')).rejects.toThrow('there is no delivery none');
  });
});
