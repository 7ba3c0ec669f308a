import { Module, ValidationPipe } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_PIPE } from '@nestjs/core';
import { paymentsConfig, PaymentsModule } from 'nestjs-payments';
import { Checkout } from './checkout/checkout.service.js';
import { Ledger } from './ledger/ledger.js';
import { LedgerController } from './ledger/ledger.controller.js';
import { OrderBook } from './orders/order.book.js';
import { Orders } from './orders/orders.service.js';
import { OrdersController } from './orders/orders.controller.js';
import { Bookkeeper } from './payments/bookkeeper.js';
import { shopConfig } from './shop.config.js';

/**
 * The shop. Out: `orders/` takes an order, `checkout/` asks the service for its invoice. In: the service's
 * deliveries arrive at `/webhooks/payments`, `payments/` checks them, `ledger/` books them.
 */
@Module({
  imports: [
    ConfigModule.forFeature(shopConfig),
    PaymentsModule.forRootAsync(paymentsConfig.asProvider()),
  ],
  controllers: [OrdersController, LedgerController],
  providers: [
    OrderBook,
    Orders,
    Checkout,
    Bookkeeper,
    Ledger,
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
