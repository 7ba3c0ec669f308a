import { Body, Controller, Injectable, Module, Post, Req } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
// oxlint-disable-next-line typescript/consistent-type-imports -- Nest reads the constructor's types
import { OnPaymentEvent, PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, PaymentsModuleOptions } from 'nestjs-payments';

declare module 'nestjs-payments' {
  interface PaymentEventMap {
    'payout.settled': { payoutId: string };
  }
}

/** What the shop keeps of a payment, typed as the package types it. */
export interface Booking {
  transactionId: string;
  amount: number;
  company: string;
  status: 'complete' | 'failed';
}

@Injectable()
export class Orders {
  readonly booked: Booking[] = [];

  constructor(private readonly payments: PaymentsApiService) {}

  @OnPaymentEvent('transaction.completed')
  async markPaid(
    event: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext,
  ): Promise<void> {
    const { transactionId, amount } = event.data;
    const { status } = await this.payments.getTransaction<Pick<Booking, 'status'>>(transactionId);
    this.booked.push({ transactionId, amount, company: context.company, status });
  }

  @OnPaymentEvent('payout.settled')
  settle(event: PaymentEvent<'payout.settled'>): string {
    return event.data.payoutId;
  }
}

/** What a route of the application sees of its request. */
export interface Echo {
  body: unknown;
  rawBody: string | null;
}

/** A route of the application's own, whose body must stay what it was. */
@Controller('echo')
export class EchoController {
  @Post()
  echo(@Body() body: unknown, @Req() request: { rawBody?: Buffer }): Echo {
    return { body: body ?? null, rawBody: request.rawBody?.toString() ?? null };
  }
}

@Module({})
export class ShopModule {
  static with(options: PaymentsModuleOptions): DynamicModule {
    return {
      module: ShopModule,
      imports: [PaymentsModule.forRootAsync({ useFactory: () => options })],
      controllers: [EchoController],
      providers: [Orders],
    };
  }

  /** The same application without the package: what its other routes are measured against. */
  static without(): DynamicModule {
    return { module: ShopModule, controllers: [EchoController] };
  }
}
