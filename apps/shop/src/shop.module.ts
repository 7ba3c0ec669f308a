import { Module, ValidationPipe } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_PIPE } from '@nestjs/core';
import { paymentsConfig, PaymentsModule } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { Books } from './books/books.js';
import { BooksModule } from './books/books.module.js';
import { Checkout } from './checkout/checkout.service.js';
import { LedgerController } from './ledger/ledger.controller.js';
import { Orders } from './orders/orders.service.js';
import { OrdersController } from './orders/orders.controller.js';
import { Bookkeeper } from './payments/bookkeeper.js';
import { InboxController } from './payments/inbox.controller.js';
import { shopConfig } from './shop.config.js';
import type { ShopSettings } from './shop.config.js';

/**
 * The shop. Out: `orders/` takes an order, `checkout/` asks the service for its invoice. In: the service's
 * deliveries arrive at `/webhooks/payments`, `payments/` checks and books them, `ledger/` shows what is booked.
 * `books/` is where all of it is stored.
 */
@Module({
  imports: [
    ConfigModule.forFeature(shopConfig),
    BooksModule,
    PaymentsModule.forRootAsync({
      imports: [
        BooksModule,
        ConfigModule.forFeature(paymentsConfig),
        ConfigModule.forFeature(shopConfig),
      ],
      inject: [paymentsConfig.KEY, Books, shopConfig.KEY],
      useFactory: (
        payments: PaymentsModuleOptions,
        { inbox }: Books,
        { leaseMs }: ShopSettings,
      ): PaymentsModuleOptions => ({ ...payments, inbox, worker: { leaseMs } }),
    }),
  ],
  controllers: [OrdersController, LedgerController, InboxController],
  providers: [
    Orders,
    Checkout,
    Bookkeeper,
    {
      provide: APP_PIPE,
      useValue: new ValidationPipe({
        transform: true,
        whitelist: true,
        forbidNonWhitelisted: true,
        stopAtFirstError: true,
      }),
    },
  ],
})
export class ShopModule {}
