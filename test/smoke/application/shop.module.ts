import { Body, Controller, Injectable, Module, Post, Req } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { IsUUID } from 'class-validator';
// oxlint-disable-next-line typescript/consistent-type-imports -- Nest reads the constructor's types
import {
  OnPaymentEvent,
  paymentsConfig,
  PaymentsApiService,
  PaymentsModule,
} from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, PaymentsModuleOptions } from 'nestjs-payments';
import { BasicAuthGuard, PaymentsConsoleModule } from 'nestjs-payments/console';

declare module 'nestjs-payments' {
  interface PaymentEventMap {
    'payout.settled': { payoutId: string };
  }
}

/** The data of an event as the shop insists on it. */
export class Payout {
  @IsUUID()
  payoutId!: string;
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
  readonly settled: Payout[] = [];

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

  @OnPaymentEvent('payout.settled', { data: Payout })
  settle(event: PaymentEvent<'payout.settled', Payout>): void {
    this.settled.push(event.data);
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
    return ShopModule.of(PaymentsModule.forRootAsync({ useFactory: () => options }));
  }

  /** With a console for operators. */
  static withConsole(options: PaymentsModuleOptions, users: Record<string, string>): DynamicModule {
    return ShopModule.of(
      PaymentsModule.forRoot(options),
      PaymentsConsoleModule.register({
        path: 'ops/payments',
        guards: [new BasicAuthGuard({ users })],
      }),
    );
  }

  static fromEnvironment(): DynamicModule {
    return ShopModule.of(
      ConfigModule.forRoot({ ignoreEnvFile: true }),
      PaymentsModule.forRootAsync(paymentsConfig.asProvider()),
    );
  }

  /** The same application without the package: what its other routes are measured against. */
  static without(): DynamicModule {
    return { module: ShopModule, controllers: [EchoController] };
  }

  private static of(...imports: DynamicModule['imports'] & object): DynamicModule {
    return { module: ShopModule, imports, controllers: [EchoController], providers: [Orders] };
  }
}
