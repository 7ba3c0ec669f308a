import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { getToken, json, post } from '../../support/emulator/api-client.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { until } from '../../support/emulator/webhook-receiver.js';

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started));

const states = () => emulator.deliveries().map(({ state, faults }) => [state, faults]);

describe('an outage of all deliveries', () => {
  it('the fault off sends nothing, logs the attempts as dropped, and sends nothing after its end', async () => {
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
      message: 'not sent because of the off fault',
    });
    expect(receiver.received).toEqual([]);
    emulator.sendEvent({ eventType: 'later' });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['later', 'later']);
  });

  it('the fault off drops attempts that were delayed before it was switched on', async () => {
    emulator.setFaults({ delivery: { delay: { ms: 60_000 } } });
    emulator.sendEvent({ eventType: 'x' });
    await until(() => emulator.deliveries().length === 1);
    emulator.setFault('delivery', 'off', true);
    await emulator.flush();
    expect(states()).toEqual([['dropped', ['delay', 'off']]]);
    expect(receiver.received).toEqual([]);
  });

  it('the fault off drops a scheduled retry, and no further retry follows', async () => {
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

  it('the fault off also drops the test webhook of the service, and the webhook stays active', async () => {
    emulator.setFault('delivery', 'off', true);
    const authorization = `Bearer ${await getToken(emulator)}`;
    const response = post(`${emulator.baseUrl}/v1/webhooks/test`, undefined, { authorization });
    expect(await json(response)).toMatchObject({ delivered: false, error: { code: 'dropped' } });
    expect(states()).toEqual([['dropped', ['off']]]);
    expect(emulator.company.webhook.active).toBe(true);
    expect(receiver.received).toEqual([]);
  });

  it('the fault off applies to one company, and not to manual redeliveries', async () => {
    const { companyId } = emulator.createCompany({ webhookUrl: receiver.url });
    emulator.setFault('delivery', 'off', true, companyId);
    emulator.sendEvent({ companyId, eventType: 'theirs' });
    emulator.sendEvent({ eventType: 'ours' });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['ours']);
    const [dropped] = emulator.deliveries({ state: 'dropped' });
    expect(await emulator.redeliver(dropped?.id ?? '')).toMatchObject({ state: 'delivered' });
  });

  it('setFault() changes one fault, keeps the counts of the others, and rejects invalid values', async () => {
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
