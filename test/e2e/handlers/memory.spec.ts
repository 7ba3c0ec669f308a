import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { memoryInbox, none, OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { until } from '../../support/time/waiting.js';
import { Gate } from '../../support/time/gate.js';
import {
  webhookRequest,
  onOneAdapter,
  stored,
  storedDelivery,
} from '../../support/webhook/handler-application.js';
import type { WebhookApplication } from '../../support/webhook/webhook-application.js';

let gate: Gate;
let ran: string[] = [];
let broken = false;

@Injectable()
class Orders {
  @OnPaymentEvent('slow')
  async slow(event: PaymentEvent): Promise<void> {
    await gate.pass();
    ran.push(event.id);
  }

  @OnPaymentEvent('quick')
  quick(event: PaymentEvent): void {
    ran.push(event.id);
    if (broken) throw new Error('broken');
  }
}

function reset(): void {
  gate = new Gate();
  ran = [];
  broken = false;
}

async function knows(app: WebhookApplication, id: string): Promise<boolean> {
  return (await app.app.get(PaymentInbox).get(id, 'default')) !== undefined;
}

/** An event whose body has about `bytes` bytes. */
function sized(id: string, bytes: number, eventType = 'quick') {
  return webhookRequest({ id, eventType, data: { padding: 'x'.repeat(bytes) } });
}

onOneAdapter('the memory inbox', (start) => {
  it('the memory inbox removes the oldest finished events beyond maxEvents, and never an unfinished event', async () => {
    reset();
    const inbox = memoryInbox({ maxEvents: 3 });
    await using app = await start({ providers: [Orders], payments: { inbox } });
    const slow = app.send(webhookRequest({ id: 'slow', eventType: 'slow' }));
    await gate.arrival;
    for (const id of ['e-1', 'e-2', 'e-3', 'e-4']) {
      expect(await app.send(webhookRequest({ id, eventType: 'quick' }))).toMatchObject({
        status: 200,
      });
    }
    const known = await Promise.all(
      ['slow', 'e-1', 'e-2', 'e-3', 'e-4'].map((id) => knows(app, id)),
    );
    expect(known).toEqual([true, false, false, true, true]);
    gate.open();
    expect((await slow).status).toBe(200);
  });

  it('the memory inbox responds 503 inbox_full while all events are unfinished, but accepts copies of them', async () => {
    reset();
    const inbox = memoryInbox({ maxEvents: 2 });
    await using app = await start({ providers: [Orders], payments: { inbox } });
    const first = webhookRequest({ id: 'e-1', eventType: 'slow' });
    const responses = [app.send(first), app.send(webhookRequest({ id: 'e-2', eventType: 'slow' }))];
    await until(() => gate.inside === 2);
    const rejected = await app.send(webhookRequest({ id: 'e-3', eventType: 'quick' }));
    expect(rejected).toMatchObject({ status: 503, body: { code: 'inbox_full' } });
    expect(rejected.body['message']).toMatch(/Raise "maxEvents" or "maxBytes"/);
    const copy = app.send(first);
    gate.open();
    for (const response of await Promise.all([...responses, copy]))
      expect(response.status).toBe(200);
    expect(await app.send(webhookRequest({ id: 'e-3', eventType: 'quick' }))).toMatchObject({
      status: 200,
    });
    expect(ran.toSorted()).toEqual(['e-1', 'e-2', 'e-3']);
  });

  it('the memory inbox removes the bodies of finished events beyond maxBytes, and still recognises their copies', async () => {
    reset();
    const inbox = memoryInbox({ maxBytes: 10_000 });
    await using app = await start({ providers: [Orders], payments: { inbox } });
    const first = sized('e-1', 4000);
    for (const sent of [first, sized('e-2', 4000), sized('e-3', 4000)]) {
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'handled' } });
    }
    expect((await stored(app, 'e-1')).raw).toBeNull();
    expect((await stored(app, 'e-2')).raw).not.toBeNull();
    expect(await app.send(first)).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    await app.send(sized('e-1', 4001));
    expect(app.log.matching(/e-1.*another body/)).toHaveLength(1);
    expect(ran).toEqual(['e-1', 'e-2', 'e-3']);
  });

  it('the memory inbox responds 503 inbox_full if the bodies of unfinished events leave too few bytes', async () => {
    reset();
    const inbox = memoryInbox({ maxBytes: 10_000 });
    await using app = await start({ providers: [Orders], payments: { inbox } });
    const slow = app.send(sized('slow', 7000, 'slow'));
    await gate.arrival;
    expect((await app.send(sized('e-1', 4000))).body['code']).toBe('inbox_full');
    expect(await app.send(sized('e-2', 2000))).toMatchObject({ status: 200 });
    gate.open();
    await slow;
    expect(await app.send(sized('e-1', 4000))).toMatchObject({ status: 200 });
  });

  it('WH-22 the memory inbox handles a copy as new if its dead event was removed to make room for other events', async () => {
    reset();
    broken = true;
    const inbox = memoryInbox({ maxBytes: 10_000 });
    const worker = { retry: none };
    await using app = await start({ providers: [Orders], payments: { inbox, worker } });
    const dead = sized('dead', 4000);
    await app.send(dead);
    broken = false;
    await app.send(sized('e-1', 4000));
    await app.send(sized('e-2', 4000));
    expect(await app.app.get(PaymentInbox).get('dead')).toBeUndefined();
    expect(await app.send(dead)).toMatchObject({ status: 200, body: { status: 'handled' } });
    expect(await storedDelivery(app, 'dead')).toMatchObject({ state: 'done' });
    expect((await stored(app, 'dead')).raw?.equals(dead.body)).toBe(true);
  });

  it('IN-07 the memory inbox treats a copy as a duplicate until its retention ends, and as new afterwards', async () => {
    reset();
    const runtime = new FakeRuntime();
    const inbox = memoryInbox({ retainEventsMs: 60_000 });
    await using app = await start({ providers: [Orders], payments: { inbox, runtime } });
    const sent = webhookRequest({ id: 'e-1', eventType: 'quick' });
    await app.send(sent);
    runtime.advance(59_999);
    expect((await app.send(sent)).body['status']).toBe('duplicate');
    runtime.advance(1);
    expect((await app.send(sent)).body['status']).toBe('handled');
    expect(ran).toEqual(['e-1', 'e-1']);
  });
});
