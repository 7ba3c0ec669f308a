import { Module } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import { fixed, memoryInbox, OnPaymentEvent, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import type { PaymentEvent, PaymentsModuleOptions } from 'nestjs-payments';
import { deliver, paymentEvent, settled, TestRuntime } from 'nestjs-payments/testing';
import { OPTIONS } from '../../support/webhook/webhook-application.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

let app: INestApplication | undefined;
afterEach(() => app?.close());

/** Each attempt calls and awaits {@link Orders.work}. */
class Orders {
  attempts = 0;
  work: (event: PaymentEvent) => Promise<unknown> | void = () => {};

  @OnPaymentEvent('*')
  async take(event: PaymentEvent): Promise<void> {
    this.attempts += 1;
    await this.work(event);
  }
}

async function start(options: Partial<PaymentsModuleOptions>): Promise<Orders> {
  @Module({
    imports: [PaymentsModule.forRoot({ ...OPTIONS, ...options })],
    providers: [Orders],
  })
  class App {}
  app = await NestFactory.create(App, { logger: false });
  await app.init();
  return app.get(Orders);
}

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('AP-12 settled() resolves when every due delivery has run', async () => {
    const orders = await start({
      inbox: (await durable.data()).inbox(),
      worker: { concurrency: 2 },
    });
    await settled(app!);
    for (let index = 0; index < 12; index += 1) {
      expect(await deliver(app!, paymentEvent('a.b'))).toMatchObject({
        body: { status: 'stored' },
      });
    }
    await settled(app!);
    expect(orders.attempts).toBe(12);
  });

  it('AP-12 settled() waits for a running delivery, and for a delivery that waits until another delivery ends', async () => {
    const orders = await start({ inbox: (await durable.data()).inbox() });
    const gate = Promise.withResolvers<void>();
    orders.work = () => gate.promise;
    const data = { transactionId: 't-1' };
    const events = [paymentEvent('a.b', data), paymentEvent('a.b', data)];
    for (const event of events) await deliver(app!, event);
    const waiting = settled(app!, { timeoutMs: 100 });
    await expect(waiting).rejects.toThrow(/not settled within 100 ms/);
    await expect(waiting).rejects.toThrow(
      `*#take is running for event ${events[0]!.id} of company default, attempts: 1`,
    );
    await expect(waiting).rejects.toThrow(
      `*#take is pending for event ${events[1]!.id} of company default, attempts: 0`,
    );
    gate.resolve();
    await settled(app!);
    expect(orders.attempts).toBe(2);
  });

  it('AP-12 settled() does not wait for a later retry or for a paused or dead delivery', async () => {
    const orders = await start({
      inbox: (await durable.data()).inbox(),
      worker: { retry: fixed([3_600_000]) },
    });
    orders.work = () => Promise.reject(new Error('the warehouse is closed'));
    const event = paymentEvent('a.b');
    await deliver(app!, event);
    await settled(app!);
    const inbox = app!.get(PaymentInbox);
    const delivery = async () => (await inbox.get(event.id))?.deliveries[0];
    expect(await delivery()).toMatchObject({ state: 'pending', attempts: 1 });
    await inbox.pause('*#take');
    await deliver(app!, paymentEvent('a.b'));
    await settled(app!);
    expect(orders.attempts).toBe(1);
    await inbox.skip({ ids: [event.id] });
    await inbox.resume('*#take');
    await settled(app!);
    expect(orders.attempts).toBe(2);
  });
});

describe('with a TestRuntime', () => {
  it('AP-13 TestRuntime.advance() runs a retry when it becomes due', async () => {
    const runtime = new TestRuntime();
    const orders = await start({ inbox: memoryInbox(), runtime });
    orders.work = () => {
      if (orders.attempts === 1) throw new Error('the warehouse is closed');
    };
    const event = paymentEvent('a.b');
    expect(await deliver(app!, event)).toMatchObject({ status: 503 });
    await settled(app!);
    expect(orders.attempts).toBe(1);
    await runtime.advance(1499);
    await settled(app!);
    expect(orders.attempts).toBe(1);
    // The first wait is 1 s × (1 + random()), and random() returns 0.5.
    await runtime.advance(1);
    await settled(app!);
    expect(orders.attempts).toBe(2);
    expect(await app!.get(PaymentInbox).get(event.id)).toMatchObject({
      deliveries: [{ state: 'done' }],
    });
  });
});
