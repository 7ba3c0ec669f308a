import { describe, expect, it } from '@jest/globals';
import type { DeliveryFaults } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { getToken, json, post } from '../../support/emulator/api-client.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { Received, WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { signatureOf } from '../../support/emulator/webhook-receiver.js';
import { until } from '../../support/time/waiting.js';

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started), { seed: 'faults' });

/** Completes payments with these faults, ends all delays, and returns the received deliveries. */
async function arrived(delivery: DeliveryFaults, payments = 1): Promise<readonly Received[]> {
  emulator.setFaults({ delivery });
  for (let number = 1; number <= payments; number++) {
    const payment = { amount: number, externalReference: `order-${number}` };
    emulator.complete(emulator.createCheckoutInvoice(payment).transactionId);
  }
  await emulator.flush();
  return receiver.received;
}

const amounts = (received: readonly Received[]) =>
  received.map(({ event }) => event.data['amount']);
const signature = ({ headers }: Received) => headers['x-webhook-signature'];

function sign({ body }: Received, secret = emulator.company.webhookSecret): string {
  return signatureOf(body, secret);
}

describe('delivery faults', () => {
  it('the fault `duplicate` sends the same event, body and signature several times', async () => {
    const received = await arrived({ duplicate: { copies: 2 } });
    expect(received).toHaveLength(3);
    expect(new Set(received.map(({ body }) => String(body))).size).toBe(1);
    expect(received.every((each) => signature(each) === sign(each))).toBe(true);
    expect(emulator.deliveries().map(({ cause, copy }) => [cause, copy])).toEqual([
      ['event', 0],
      ['duplicate', 1],
      ['duplicate', 2],
    ]);
  });

  it('the fault `reorder` sends all deliveries of a window, in another order', async () => {
    const received = await arrived({ reorder: { window: 5 } }, 5);
    expect(amounts(received)).not.toEqual([1, 2, 3, 4, 5]);
    expect(new Set(amounts(received))).toEqual(new Set([1, 2, 3, 4, 5]));
  });

  it('the fault `delay` delays the delivery', async () => {
    const clock = new ManualClock();
    await using patient = await PaymentsEmulator.start({ webhookUrl: receiver.url, clock });
    patient.setFaults({ delivery: { delay: { ms: [600_000, 600_000] } } });
    patient.sendEvent({ eventType: 'x' });
    await until(() => clock.pending > 0);
    clock.advance(599_999);
    expect(patient.deliveries()[0]).toMatchObject({ state: 'waiting', faults: ['delay'] });
    clock.advance(1);
    await patient.idle();
    expect(patient.deliveries()[0]).toMatchObject({ state: 'delivered', faults: ['delay'] });
  });

  it('the fault `drop` sends nothing and logs the attempt as dropped', async () => {
    expect(await arrived({ drop: { next: 1 }, redeliver: [1] }, 2)).toHaveLength(1);
    expect(emulator.deliveries().map(({ state, faults }) => [state, faults])).toEqual([
      ['dropped', ['drop']],
      ['delivered', []],
    ]);
  });

  it.each(['value', 'respace', 'truncate'] as const)(
    'after the fault `tamperBody` (%s), the signature does not match the body',
    async (how) => {
      const [received] = await arrived({ tamperBody: { how } });
      expect(signature(receiver.first)).toMatch(/^sha512=[0-9a-f]{128}$/);
      expect(signature(receiver.first)).not.toBe(sign(receiver.first));
      expect(emulator.deliveries()[0]?.request?.body).toBe(String(received?.body));
    },
  );

  it('the fault `tamperSignature` changes one digit, omits the signature, shortens it, or changes the scheme', async () => {
    const signatures: unknown[] = [];
    for (const how of ['digit', 'missing', 'malformed', 'scheme'] as const) {
      receiver.received.length = 0;
      await arrived({ tamperSignature: { how } });
      expect(signature(receiver.first)).not.toBe(sign(receiver.first));
      signatures.push(signature(receiver.first));
    }
    expect(signatures).toEqual([
      expect.stringMatching(/^sha512=[0-9a-f]{128}$/),
      undefined,
      expect.stringMatching(/^sha512=[0-9a-f]{126}$/),
      expect.stringMatching(/^sha256=[0-9a-f]{128}$/),
    ]);
  });

  it('the fault `oldSecret` signs with the secret before the last rotation', async () => {
    const before = emulator.company.webhookSecret;
    emulator.rotateWebhookSecret();
    const [first, second] = await arrived({ oldSecret: { next: 1 } }, 2);
    const fits = (received: Received | undefined, secret?: string) =>
      received !== undefined && signature(received) === sign(received, secret);
    // The two deliveries are concurrent; the log shows to which one the fault applied.
    const faulty = emulator.deliveries().find(({ faults }) => faults.includes('oldSecret'));
    const [old, current] = first?.event.id === faulty?.eventId ? [first, second] : [second, first];
    expect(fits(old, before)).toBe(true);
    expect(fits(current)).toBe(true);
  });

  it('the fault `oldSecret` signs with an unrelated secret if there was no rotation', async () => {
    await arrived({ oldSecret: {} });
    expect(signature(receiver.first)).toMatch(/^sha512=[0-9a-f]{128}$/);
    expect(signature(receiver.first)).not.toBe(sign(receiver.first));
  });

  it('the fault `tamperBody` with `next: 1` changes the first attempt, and not the retry after its rejection', async () => {
    receiver.respond = (received, response) => {
      response.statusCode = signature(received) === sign(received) ? 200 : 401;
      response.end();
    };
    const [first, second] = await arrived({ tamperBody: { next: 1 }, redeliver: [60_000] });
    expect(second?.event.id).toBe(first?.event.id);
    expect(amounts([first, second] as Received[])).toEqual([2, 1]);
    expect(emulator.deliveries().map(({ state }) => state)).toEqual(['failed', 'delivered']);
  });

  it('delivery faults do not apply to a manual redelivery', async () => {
    await arrived({ tamperBody: {}, tamperSignature: {}, oldSecret: {}, drop: { next: 1 } });
    const again = await emulator.redeliver(emulator.deliveries()[0]?.id ?? '');
    expect(again).toMatchObject({ cause: 'redelivery', state: 'delivered', faults: [] });
    expect(signature(receiver.first)).toBe(sign(receiver.first));
  });

  it('the fault `redeliver` replaces the redelivery schedule of the emulator', async () => {
    receiver.respondWith(500);
    expect(await arrived({ redeliver: [1_000, 2_000] })).toHaveLength(3);
  });
});

describe('the seed', () => {
  const everything: DeliveryFaults = {
    drop: { probability: 0.2 },
    duplicate: { probability: 0.3, copies: 2 },
    reorder: { probability: 0.5, window: 3 },
    delay: { probability: 0.3, ms: [1, 1000] },
    tamperBody: { probability: 0.2 },
    tamperSignature: { probability: 0.2 },
    redeliver: [100, 200],
  };

  /** Returns the sorted attempts of a run. */
  async function run(seed: string, freshIds = false): Promise<string[]> {
    await using seeded = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      seed,
      freshIds,
    });
    receiver.respond = (received, response) => {
      response.statusCode = received.event.eventType === '' ? 400 : 200;
      response.end();
    };
    seeded.setFaults({ delivery: everything });
    for (let number = 1; number <= 30; number++) seeded.sendEvent({ eventType: `e${number}` });
    await seeded.flush();
    return seeded
      .deliveries()
      .map((each) =>
        [each.eventType, each.copy, each.attempt, each.state, ...each.faults].join(' '),
      )
      .toSorted((one, other) => one.localeCompare(other));
  }

  it('a seed repeats all faults of a run, and another seed gives other faults', async () => {
    const first = await run('one');
    expect(first.length).toBeGreaterThan(30);
    expect(await run('one')).toEqual(first);
    expect(await run('two')).not.toEqual(first);
  });

  it('a seed gives the same faults with freshIds as without', async () => {
    expect(await run('one', true)).toEqual(await run('one'));
  });

  it('a seed repeats the order of reordered deliveries', async () => {
    const order = async () => {
      await emulator.reset();
      receiver.received.length = 0;
      return amounts(await arrived({ reorder: { window: 8 } }, 8));
    };
    expect(await order()).toEqual(await order());
  });
});

it('reset() cancels delayed deliveries', async () => {
  emulator.setFaults({ delivery: { delay: { ms: 3_600_000 } } });
  emulator.sendEvent({ eventType: 'x' });
  await until(() => emulator.deliveries().length === 1);
  await emulator.reset();
  await emulator.idle();
  expect(emulator.deliveries()).toEqual([]);
  expect(receiver.received).toEqual([]);
});

const states = () => emulator.deliveries().map(({ state, faults }) => [state, faults]);

describe('an outage of all deliveries', () => {
  it('the fault `off` sends nothing and logs the attempts as dropped, and the emulator does not send them after the end of the fault', async () => {
    emulator.setFaults({
      delivery: { off: true, duplicate: {}, delay: { ms: 1 }, redeliver: [1] },
    });
    const { transactionId } = emulator.createPayout({ amount: 5, externalReference: 'o-1' });
    emulator.complete(transactionId);
    emulator.setFault('delivery', 'off', undefined);
    await emulator.flush();
    expect(states()).toEqual([['dropped', ['off']]]);
    expect(emulator.deliveries()[0]?.failure).toEqual({
      code: 'dropped',
      message: 'the event was not sent, because the fault "off" applied',
    });
    expect(receiver.received).toEqual([]);
    emulator.sendEvent({ eventType: 'later' });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['later', 'later']);
  });

  it('the fault `off` drops attempts that were delayed before the fault was switched on', async () => {
    emulator.setFaults({ delivery: { delay: { ms: 60_000 } } });
    emulator.sendEvent({ eventType: 'x' });
    await until(() => emulator.deliveries().length === 1);
    emulator.setFault('delivery', 'off', true);
    await emulator.flush();
    expect(states()).toEqual([['dropped', ['delay', 'off']]]);
    expect(receiver.received).toEqual([]);
  });

  it('the fault `off` drops a scheduled retry, and no further retry follows', async () => {
    const clock = new ManualClock();
    const options = { webhookUrl: receiver.url, clock, redeliver: [1_000, 1_000] };
    await using patient = await PaymentsEmulator.start(options);
    receiver.respondWith(500);
    patient.sendEvent({ eventType: 'x' });
    await until(() => patient.deliveries().length === 2 && clock.pending === 1);
    patient.setFault('delivery', 'off', true);
    clock.advance(1_000);
    await patient.flush();
    expect(patient.deliveries().map(({ state }) => state)).toEqual(['failed', 'dropped']);
    expect(clock.pending).toBe(0);
  });

  it('the fault `off` also drops the test webhook of the service, and the webhook stays active', async () => {
    emulator.setFault('delivery', 'off', true);
    const authorization = `Bearer ${await getToken(emulator)}`;
    const response = post(`${emulator.baseUrl}/v1/webhooks/test`, undefined, { authorization });
    expect(await json(response)).toMatchObject({ delivered: false, error: { code: 'dropped' } });
    expect(states()).toEqual([['dropped', ['off']]]);
    expect(emulator.company.webhook.active).toBe(true);
    expect(receiver.received).toEqual([]);
  });

  it('the fault `off` applies to one company, and not to manual redeliveries', async () => {
    const { companyId } = emulator.createCompany({ webhookUrl: receiver.url });
    emulator.setFault('delivery', 'off', true, companyId);
    emulator.sendEvent({ companyId, eventType: 'theirs' });
    emulator.sendEvent({ eventType: 'ours' });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['ours']);
    const [dropped] = emulator.deliveries({ state: 'dropped' });
    expect(await emulator.redeliver(dropped?.id ?? '')).toMatchObject({ state: 'delivered' });
  });

  it('setFault() changes one fault, keeps the counts of the other faults, and rejects invalid values', async () => {
    emulator.setFaults({ delivery: { drop: { next: 2 } } });
    emulator.sendEvent({ eventType: 'x' });
    await emulator.idle();
    emulator.setFault('delivery', 'off', true);
    expect(emulator.faults()).toEqual({ delivery: { drop: { next: 1 }, off: true } });
    emulator.setFault('delivery', 'off', undefined);
    expect(emulator.faults()).toEqual({ delivery: { drop: { next: 1 } } });
    expect(() => emulator.setFault('delivery', 'off', false as never)).toThrow(
      'delivery.off must be true; remove the fault to switch it off',
    );
    const url = `${controls}/companies/default/faults/delivery/off`;
    await fetch(url, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: 'true',
    });
    expect(emulator.faults().delivery?.off).toBe(true);
  });
});
