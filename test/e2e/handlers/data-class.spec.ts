import { expect, it } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import { Transform, Type } from 'class-transformer';
import { IsInt, IsString, IsUUID, Min, ValidateNested } from 'class-validator';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import {
  webhookRequest,
  onOneAdapter,
  stored,
  storedDelivery,
} from '../../support/webhook/handler-application.js';

class Customer {
  @IsString()
  name!: string;
}

class Paid {
  @IsUUID()
  transactionId!: string;

  @IsInt()
  @Min(1)
  amount!: number;

  @ValidateNested()
  @Type(() => Customer)
  customer?: Customer;

  get cents(): number {
    return this.amount * 100;
  }
}

class Exact {
  @Transform(({ value }: { value: unknown }) => {
    if (typeof value !== 'number') throw new TypeError(`not a number: ${String(value)}`);
    return value;
  })
  amount!: number;
}

const got: PaymentEvent<string, Paid>[] = [];

class Orders {
  @OnPaymentEvent('transaction.completed', { data: Paid })
  book(event: PaymentEvent<'transaction.completed', Paid>): void {
    got.push(event);
  }

  @OnPaymentEvent('transaction.exact', { data: Exact })
  exact(event: PaymentEvent<string, Exact>): void {
    expect(event.data).toBeInstanceOf(Exact);
  }
}

@Injectable()
class Single extends Orders {}
@Injectable({ scope: Scope.REQUEST })
class Scoped extends Orders {}

const ID = '0f8fad5b-d9cb-469f-a165-70867728950e';

onOneAdapter('data classes of handlers', (start) => {
  it.each([
    ['a singleton provider', Single] as const,
    ['a request-scoped provider', Scoped] as const,
  ])(
    'WH-18 the application passes the handler an instance of its data class, for %s',
    async (_, provider) => {
      got.length = 0;
      await using app = await start({ providers: [provider] });
      const data = { transactionId: ID, amount: 15, customer: { name: 'Ada' }, extra: { a: 1 } };
      expect(await app.send(webhookRequest({ data }))).toMatchObject({ status: 200 });
      expect(got[0]!.data).toBeInstanceOf(Paid);
      expect(got[0]!.data.customer).toBeInstanceOf(Customer);
      expect(got[0]!.data.cents).toBe(1500);
      expect(got[0]!.data).toMatchObject({ extra: { a: 1 } });
      expect(Object.isFrozen(got[0])).toBe(true);
    },
  );

  it.each([
    [
      'a rule',
      { transactionId: 'whsec_4242', amount: -4242 },
      'transactionId (isUuid), amount (min)',
    ],
    [
      'a nested rule',
      { transactionId: ID, amount: 4242, customer: { name: 4242 } },
      'customer (nested)',
    ],
    ['a type rule', { transactionId: ID, amount: '4242' }, 'amount (min), amount (isInt)'],
  ])(
    'WH-24 the application makes a delivery a dead letter at once if its data breaks %s, and keeps the event',
    async (_, data, rules) => {
      await using app = await start({ providers: [Single] });
      const sent = webhookRequest({ id: 'e-1', data });
      const response = await app.send(sent);
      expect(response).toMatchObject({ status: 503, body: { code: 'handlers_failed' } });
      const { state, attempts, lastError } = await storedDelivery(app, 'e-1');
      expect({ state, attempts }).toEqual({ state: 'dead', attempts: 1 });
      expect(lastError).toContain(
        'PaymentsError (data_invalid): "data" of the transaction.completed event',
      );
      expect(lastError).toContain(`does not satisfy Paid: ${rules}.`);
      expect((await stored(app, 'e-1')).raw?.equals(sent.body)).toBe(true);
      expect(
        app.log.matching(/error .*e-1.*transaction\.completed#book.*is dead.*data_invalid/),
      ).toHaveLength(1);
      const texts = [lastError, response.text, ...app.log.lines].join('\n');
      expect(texts).not.toContain('4242');
    },
  );

  it('WH-24 the application stores and logs no value of the payload if a @Transform of the data class throws', async () => {
    await using app = await start({ providers: [Single] });
    const sent = webhookRequest({
      id: 'e-1',
      eventType: 'transaction.exact',
      data: { amount: 'x4242' },
    });
    expect(await app.send(sent)).toMatchObject({ status: 503 });
    const { state, lastError } = await storedDelivery(app, 'e-1');
    expect(state).toBe('dead');
    expect(lastError).toContain('(data_invalid)');
    expect([lastError, ...app.log.lines].join()).not.toContain('4242');
  });
});
