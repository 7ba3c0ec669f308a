import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { webhookRequest, onOneAdapter, stored } from '../../support/webhook/handler-application.js';

@Injectable()
class Named {
  readonly seen: string[] = [];

  @OnPaymentEvent('constructor')
  ofConstructors(event: PaymentEvent): void {
    this.seen.push(event.eventType);
  }

  @OnPaymentEvent('__proto__', { name: '__proto__' })
  ofProto(event: PaymentEvent): void {
    this.seen.push(event.eventType);
  }
}

onOneAdapter('events without a handler', (start) => {
  it('WH-10 the application responds 200 to a webhook.test event without a handler, and logs it as a test', async () => {
    await using app = await start({});
    const sent = webhookRequest({ id: 'e-1', eventType: 'webhook.test' });
    expect(await app.send(sent)).toMatchObject({
      status: 200,
      body: { received: true, status: 'unhandled', id: 'e-1' },
    });
    const line = /^log Test event e-1 of company default arrived and its signature is valid\./;
    expect(app.log.matching(line)).toHaveLength(1);
    expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    expect(app.log.matching(line)).toHaveLength(1);
  });

  it.each(['payout.settled', '__proto__', 'constructor', 'toString', '*'])(
    'WH-11 WH-25 the application responds 200 to the event type %s without a handler, and stores it as unhandled',
    async (eventType) => {
      await using app = await start({});
      const sent = webhookRequest({ id: 'e-1', eventType });
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'unhandled' } });
      expect(await stored(app, 'e-1')).toMatchObject({ eventType, deliveries: [] });
      expect((await stored(app, 'e-1')).raw?.equals(sent.body)).toBe(true);
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    },
  );

  it('WH-25 the application runs handlers of event types that are property names, such as constructor', async () => {
    await using app = await start({ providers: [Named] });
    for (const eventType of ['constructor', '__proto__', 'toString', 'prototype']) {
      expect(await app.send(webhookRequest({ eventType }))).toMatchObject({ status: 200 });
    }
    expect(app.app.get(Named).seen).toEqual(['constructor', '__proto__']);
  });

  it('WH-25 the application handles events whose id is a property name, such as constructor', async () => {
    await using app = await start({ providers: [Named] });
    for (const id of ['__proto__', 'constructor']) {
      const sent = webhookRequest({ id, eventType: 'constructor' });
      expect((await app.send(sent)).body['status']).toBe('handled');
      expect((await app.send(sent)).body['status']).toBe('duplicate');
    }
    expect(app.app.get(Named).seen).toHaveLength(2);
  });
});
