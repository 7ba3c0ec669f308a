import { expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { onOneAdapter, webhookRequest } from '../../support/webhook/handler-application.js';

@Injectable()
class Orders {
  @OnPaymentEvent('transaction.completed')
  markPaid(): void {}

  @OnPaymentEvent(['payout.*', 'refund.settled'], { name: 'book' })
  book(): void {}
}

onOneAdapter('logs of handlers', (start) => {
  it('WH-28 the application logs each handler with its types, and the webhook route, once at boot', async () => {
    @Module({ providers: [Orders] })
    class OrdersModule {}
    await using app = await start({
      imports: [OrdersModule],
      main: (nest) => void nest.setGlobalPrefix('api'),
    });
    expect(app.log.matching(/Payment handler/)).toEqual([
      'log Payment handler transaction.completed#markPaid: transaction.completed PaymentHandlers',
      'log Payment handler book: payout.*, refund.settled PaymentHandlers',
    ]);
    expect(app.log.matching(/Webhook route/)).toEqual([
      'log Webhook route: POST /api/webhooks/payments and POST /api/webhooks/payments/:company PaymentWebhook',
    ]);
    expect(app.log.matching(/^warn .*handler/)).toEqual([]);
  });

  it('WH-28 the application warns at boot if it has no handler, and logs no webhook route if webhookPath is false', async () => {
    await using app = await start({ payments: { webhookPath: false } });
    expect(app.log.matching(/^warn .*no payment handler.*@OnPaymentEvent/)).toHaveLength(1);
    expect(app.log.matching(/Webhook route/)).toEqual([]);
  });

  it('WH-29 the application warns about events without a handler, once per minute and type, with a suggested type', async () => {
    const runtime = new FakeRuntime();
    await using app = await start({ providers: [Orders], payments: { runtime } });
    const send = async (eventType: string, id?: string): Promise<void> => {
      expect(
        await app.send(webhookRequest({ eventType, ...(id !== undefined && { id }) })),
      ).toMatchObject({ status: 200, body: { status: 'unhandled' } });
    };
    const warned = (): string[] => app.log.matching(/^warn .*No handler takes/);
    await send('transaction.complete', 'e-1');
    expect(warned()).toEqual([
      'warn No handler takes the event type "transaction.complete", so event e-1 (company default) is stored as ' +
        'unhandled. Did you mean "transaction.completed", which a handler takes? Once a handler takes the type, ' +
        'redrive the event. PaymentInbox',
    ]);
    for (let copies = 0; copies < 5; copies += 1) await send('transaction.complete');
    expect(warned()).toHaveLength(1);
    await send('invoice.created');
    expect(warned()).toHaveLength(2);
    expect(warned()[1]).not.toContain('Did you mean');
    runtime.advance(60_000);
    expect(warned()).toHaveLength(3);
    expect(warned()[2]).toMatch(/\(4 more since the previous line\)/);
    const inbox = app.app.get(PaymentInbox);
    expect(await inbox.stats()).toMatchObject({
      unhandled: { count: 7 },
      deliveries: [],
    });
    expect((await inbox.list({ state: 'unhandled' })).events).toHaveLength(7);
  });

  it('WH-29 the application logs no second warning for a copy of an event without a handler', async () => {
    const runtime = new FakeRuntime();
    await using app = await start({ providers: [Orders], payments: { runtime } });
    const sent = webhookRequest({ eventType: 'invoice.created' });
    for (const status of ['unhandled', 'duplicate']) {
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status } });
      runtime.advance(60_000);
    }
    expect(app.log.matching(/No handler takes/)).toHaveLength(1);
  });

  it('WH-29 the application logs at most 101 lines per minute about events without a handler', async () => {
    await using app = await start({ providers: [Orders] });
    for (let index = 0; index < 150; index += 1) {
      await app.send(webhookRequest({ eventType: `made.up-${index}` }));
    }
    expect(app.log.matching(/No handler takes/)).toHaveLength(101);
  });

  it('WH-29 WH-10 the application does not warn about a webhook.test event or count it as unhandled', async () => {
    await using app = await start({ providers: [Orders] });
    await app.send(webhookRequest({ eventType: 'webhook.test' }));
    expect(app.log.matching(/No handler takes/)).toEqual([]);
    const inbox = app.app.get(PaymentInbox);
    expect(await inbox.stats()).toMatchObject({ unhandled: { count: 0 } });
    expect((await inbox.list({ state: 'unhandled' })).events).toEqual([]);
    expect((await inbox.list()).events).toHaveLength(1);
  });
});
