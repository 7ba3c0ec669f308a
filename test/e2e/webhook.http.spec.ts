import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { signedDelivery } from 'nestjs-payments/testing';
import {
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  WebhookApplication,
} from '../support/webhook.application.js';

@Injectable()
class Orders {
  readonly seen: [PaymentEvent, PaymentEventContext][] = [];

  @OnPaymentEvent('transaction.completed')
  markPaid(event: PaymentEvent<'transaction.completed'>, context: PaymentEventContext): void {
    this.seen.push([event, context]);
  }
}

describe.each(Object.keys(ADAPTERS))('on %s', (name) => {
  describe.each(Object.keys(BODY_OPTIONS))('with %s', (option) => {
    const start = () =>
      WebhookApplication.start({
        adapter: ADAPTERS[name]!(),
        nest: BODY_OPTIONS[option]!,
        providers: [Orders],
      });

    it('1: answers a valid delivery 200 and shows the handler the event, the company and the raw bytes', async () => {
      await using app = await start();
      const delivery = signedDelivery({ webhookSecret: SECRET }, { metadata: { a: 1 } });
      const answer = await app.send(delivery);
      expect(answer).toMatchObject({ status: 200, body: { received: true, status: 'handled' } });
      const { seen } = app.app.get(Orders);
      expect(seen).toHaveLength(1);
      const [event, context] = seen[0]!;
      expect(event).toEqual(JSON.parse(delivery.body.toString()));
      expect(context.company).toBe('default');
      expect(context.raw.equals(delivery.body)).toBe(true);
    });
  });
});
