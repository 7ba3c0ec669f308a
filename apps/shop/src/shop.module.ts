import { Module, ValidationPipe } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_PIPE } from '@nestjs/core';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { BasicAuthGuard, PaymentsConsoleModule } from 'nestjs-payments/console';
import { Books } from './books/books.js';
import { BooksModule } from './books/books.module.js';
import { Checkout } from './checkout/checkout.service.js';
import { BooksPageController } from './ledger/books-page.controller.js';
import { LedgerController } from './ledger/ledger.controller.js';
import { EventStreams } from './live/event.streams.js';
import { LiveBooks } from './live/live.books.js';
import { OrderPageController } from './orders/order-page.controller.js';
import { Orders } from './orders/orders.service.js';
import { OrdersController } from './orders/orders.controller.js';
import { AssetsController } from './pages/assets.controller.js';
import { Bookkeeper } from './payments/bookkeeper.js';
import { InboxController } from './payments/inbox.controller.js';
import { ShelfController } from './shelf/shelf.controller.js';
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
      imports: [BooksModule, ConfigModule.forFeature(shopConfig)],
      inject: [Books, shopConfig.KEY],
      useFactory: ({ inbox }: Books, { leaseMs }: ShopSettings): PaymentsModuleOptions => ({
        ...readPaymentsEnvironment(),
        inbox,
        worker: { leaseMs },
      }),
    }),
  ],
  controllers: [
    OrdersController,
    LedgerController,
    InboxController,
    ShelfController,
    OrderPageController,
    BooksPageController,
    AssetsController,
  ],
  providers: [
    Orders,
    Checkout,
    Bookkeeper,
    LiveBooks,
    EventStreams,
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
export class ShopModule {
  /** With the inbox's console, where the settings have one: its path is a route, and routes are known before settings are. */
  static with({ console }: ShopSettings): DynamicModule {
    if (console === null) return { module: ShopModule };
    const { path, user, password } = console;
    const guards = [new BasicAuthGuard({ users: { [user]: password } })];
    return { module: ShopModule, imports: [PaymentsConsoleModule.register({ path, guards })] };
  }
}
