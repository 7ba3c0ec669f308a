import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { DeliveryFaults } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import type { Received, Receiver } from './emulator.receiver.js';
import { until } from './emulator.receiver.js';
import { stageEmulator } from './emulator.stage.js';

let receiver: Receiver;
let emulator: PaymentsEmulator;

stageEmulator((stage) => ({ receiver, emulator } = stage), { seed: 'faults' });

/** Sends so many payments under these faults, cuts every wait short, and answers what arrived. */
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
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}

describe('a delivery fault', () => {
  it('duplicates: the same event, body and signature, several times', async () => {
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

  it('reorders: a window of deliveries arrives in another order, complete', async () => {
    const received = await arrived({ reorder: { window: 5 } }, 5);
    expect(amounts(received)).not.toEqual([1, 2, 3, 4, 5]);
    expect(new Set(amounts(received))).toEqual(new Set([1, 2, 3, 4, 5]));
  });

  it('reorders what it holds when nothing more comes', async () => {
    emulator.setFaults({ delivery: { reorder: { window: 100, maxWaitMs: 5 } } });
    for (const eventType of ['a', 'b']) emulator.sendEvent({ eventType });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['b', 'a']);
  });

  it('delays: the delivery waits for its time', async () => {
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

  it('drops: nothing is sent, and the log says so', async () => {
    expect(await arrived({ drop: { next: 1 }, redeliver: [1] }, 2)).toHaveLength(1);
    expect(emulator.deliveries().map(({ state, faults }) => [state, faults])).toEqual([
      ['dropped', ['drop']],
      ['delivered', []],
    ]);
  });

  it.each(['value', 'respace', 'truncate'] as const)(
    'tampers with the body (%s): the signature no longer fits',
    async (how) => {
      const [received] = await arrived({ tamperBody: { how } });
      expect(signature(receiver.first)).toMatch(/^sha512=[0-9a-f]{128}$/);
      expect(signature(receiver.first)).not.toBe(sign(receiver.first));
      expect(emulator.deliveries()[0]?.request?.body).toBe(String(received?.body));
    },
  );

  it('tampers with the signature: one digit, none at all, too short, another scheme', async () => {
    const spoilt: unknown[] = [];
    for (const how of ['digit', 'missing', 'malformed', 'scheme'] as const) {
      receiver.received.length = 0;
      await arrived({ tamperSignature: { how } });
      expect(signature(receiver.first)).not.toBe(sign(receiver.first));
      spoilt.push(signature(receiver.first));
    }
    expect(spoilt).toEqual([
      expect.stringMatching(/^sha512=[0-9a-f]{128}$/),
      undefined,
      expect.stringMatching(/^sha512=[0-9a-f]{126}$/),
      expect.stringMatching(/^sha256=[0-9a-f]{128}$/),
    ]);
  });

  it('signs with the secret before the last rotation', async () => {
    const before = emulator.company.webhookSecret;
    emulator.rotateWebhookSecret();
    const [first, second] = await arrived({ oldSecret: { next: 1 } }, 2);
    const fits = (received: Received | undefined, secret?: string) =>
      received !== undefined && signature(received) === sign(received, secret);
    // The two race; the one that was struck is the one the log names.
    const struck = emulator.deliveries().find(({ faults }) => faults.includes('oldSecret'));
    const [old, current] = first?.event.id === struck?.eventId ? [first, second] : [second, first];
    expect(fits(old, before)).toBe(true);
    expect(fits(current)).toBe(true);
  });

  it("signs with a stranger's secret where none was rotated", async () => {
    await arrived({ oldSecret: {} });
    expect(signature(receiver.first)).toMatch(/^sha512=[0-9a-f]{128}$/);
    expect(signature(receiver.first)).not.toBe(sign(receiver.first));
  });

  it('is mended by the redelivery: a tampered delivery that was refused comes again intact', async () => {
    receiver.answer = (received, response) => {
      response.statusCode = signature(received) === sign(received) ? 200 : 401;
      response.end();
    };
    const [first, second] = await arrived({ tamperBody: { next: 1 }, redeliver: [60_000] });
    expect(second?.event.id).toBe(first?.event.id);
    expect(amounts([first, second] as Received[])).toEqual([2, 1]);
    expect(emulator.deliveries().map(({ state }) => state)).toEqual(['failed', 'delivered']);
  });

  it('never strikes a redelivery by hand', async () => {
    await arrived({ tamperBody: {}, tamperSignature: {}, oldSecret: {}, drop: { next: 1 } });
    const again = await emulator.redeliver(emulator.deliveries()[0]?.id ?? '');
    expect(again).toMatchObject({ cause: 'redelivery', state: 'delivered', faults: [] });
    expect(signature(receiver.first)).toBe(sign(receiver.first));
  });

  it('redelivers by its own schedule, in place of the emulator-wide one', async () => {
    receiver.answerWith(500);
    expect(await arrived({ redeliver: [1_000, 2_000] })).toHaveLength(3);
  });

  it('strikes one company alone', async () => {
    const { companyId } = emulator.createCompany({ webhookUrl: receiver.url });
    emulator.setFaults({ delivery: { drop: {} } }, companyId);
    emulator.sendEvent({ companyId, eventType: 'theirs' });
    emulator.sendEvent({ eventType: 'ours' });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['ours']);
  });

  it('leaves nothing behind once the plan is replaced', async () => {
    await arrived({ drop: {} });
    expect(await arrived({})).toHaveLength(1);
    expect(emulator.faults()).toEqual({ delivery: {} });
  });

  it('counts down, and the plan tells what is left', async () => {
    await arrived({ drop: { next: 3 } }, 2);
    expect(emulator.faults()).toEqual({ delivery: { drop: { next: 1 } } });
  });
});

describe('a seed', () => {
  const everything: DeliveryFaults = {
    drop: { probability: 0.2 },
    duplicate: { probability: 0.3, copies: 2 },
    reorder: { probability: 0.5, window: 3 },
    delay: { probability: 0.3, ms: [1, 1000] },
    tamperBody: { probability: 0.2 },
    tamperSignature: { probability: 0.2 },
    redeliver: [100, 200],
  };

  /** What was sent, whatever arrived first. */
  async function run(seed: string, freshIds = false): Promise<string[]> {
    await using seeded = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      seed,
      freshIds,
    });
    receiver.answer = (received, response) => {
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

  it('makes a run repeat, fault by fault, and another seed another run', async () => {
    const first = await run('one');
    expect(first.length).toBeGreaterThan(30);
    expect(await run('one')).toEqual(first);
    expect(await run('two')).not.toEqual(first);
  });

  it('makes the faults of a run repeat if ids are fresh', async () => {
    expect(await run('one', true)).toEqual(await run('one'));
  });

  it('makes reordered deliveries arrive in the same order again', async () => {
    const order = async () => {
      await emulator.reset();
      receiver.received.length = 0;
      return amounts(await arrived({ reorder: { window: 8 } }, 8));
    };
    expect(await order()).toEqual(await order());
  });
});

it('cancels what still waits when it is reset', async () => {
  emulator.setFaults({ delivery: { delay: { ms: 3_600_000 } } });
  emulator.sendEvent({ eventType: 'x' });
  await until(() => emulator.deliveries().length === 1);
  await emulator.reset();
  await emulator.idle();
  expect(emulator.deliveries()).toEqual([]);
  expect(receiver.received).toEqual([]);
});
