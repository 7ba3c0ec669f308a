import { Injectable, Module } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, expect, it } from '@jest/globals';
import { OnPaymentEvent, PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { apiError, deliver, FakePaymentsApi, paymentEvent } from 'nestjs-payments/testing';
import { CapturedLog } from '../../support/log/captured-log.js';
import { ADAPTERS, OPTIONS } from '../../support/webhook/webhook-application.js';

@Injectable()
class Orders {
  readonly amounts: unknown[] = [];

  constructor(private readonly payments: PaymentsApiService) {}

  @OnPaymentEvent('transaction.completed')
  async take({ data }: PaymentEvent<'transaction.completed'>): Promise<void> {
    this.amounts.push((await this.payments.getTransaction(data.transactionId))['amount']);
  }
}
Reflect.defineMetadata('design:paramtypes', [PaymentsApiService], Orders);

@Module({ imports: [PaymentsModule.forRoot(OPTIONS)], providers: [Orders] })
class App {}

let app: INestApplication | undefined;
afterEach(() => app?.close());

it.each(Object.entries(ADAPTERS))(
  'AP-13 a test replaces PaymentsApiService with FakePaymentsApi on %s',
  async (_, adapter) => {
    const payments = new FakePaymentsApi();
    const testing = await Test.createTestingModule({ imports: [App] })
      .overrideProvider(PaymentsApiService)
      .useValue(payments)
      .setLogger(new CapturedLog())
      .compile();
    app = testing.createNestApplication(adapter());
    await app.init();
    const event = paymentEvent('transaction.completed', { transactionId: 't-1' });
    payments.respond('GET', '/v1/transactions/t-1', apiError(503), { amount: 350 });
    expect(await deliver(app, event)).toMatchObject({ status: 503 });
    expect(await deliver(app, event)).toMatchObject({ status: 200 });
    expect(app.get(Orders).amounts).toEqual([350]);
    expect(payments.calls).toEqual(
      Array.from({ length: 2 }, () => ({
        company: 'default',
        method: 'GET',
        path: '/v1/transactions/t-1',
      })),
    );
  },
);
