import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { onOneAdapter, webhookRequest } from '../../support/webhook/handler-application.js';

const newer: [id: string, newer: boolean][] = [];

@Injectable()
class Orders {
  @OnPaymentEvent('transaction.updated')
  async update({ id }: PaymentEvent, { newerHandled }: PaymentEventContext): Promise<void> {
    newer.push([id, await newerHandled()]);
  }
}

onOneAdapter('newerHandled() of the context', (start) => {
  it('a handler learns that it has completed a later event of the transaction', async () => {
    await using app = await start({ providers: [Orders] });
    const send = async (id: string, second: number, transactionId = 't-1') => {
      const timestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
      const event = { id, eventType: 'transaction.updated', timestamp, data: { transactionId } };
      expect(await app.send(webhookRequest(event))).toMatchObject({ status: 200 });
    };
    await send('second', 2);
    await send('first', 1);
    await send('third', 3);
    await send('other', 0, 't-2');
    expect(newer).toEqual([
      ['second', false],
      ['first', true],
      ['third', false],
      ['other', false],
    ]);
  });
});
