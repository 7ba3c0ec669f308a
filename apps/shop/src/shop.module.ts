import { Module, ValidationPipe } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_PIPE } from '@nestjs/core';
import { BasicAuthGuard, PaymentsConsoleModule } from 'nestjs-payments-console';
import { CatalogueModule } from './catalogue/catalogue.module.js';
import { LedgerModule } from './ledger/ledger.module.js';
import { OrdersModule } from './orders/orders.module.js';
import { AssetsController } from './pages/assets.controller.js';
import { CloseConnectionsAtShutdownService } from './pages/close-connections-at-shutdown.service.js';
import { ShopPaymentsModule } from './payments/shop-payments.module.js';
import { shopConfig } from './shop-config.js';
import type { ShopSettings } from './shop-config.js';

/**
 * The root module of the shop. `CatalogueModule` shows the products, and `OrdersModule` creates orders and their
 * checkout invoices. `ShopPaymentsModule` handles the webhook requests and records payments. `LedgerModule` shows the
 * recorded payments.
 */
@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true, ignoreEnvFile: true, load: [shopConfig] }),
    ShopPaymentsModule,
    CatalogueModule,
    OrdersModule,
    LedgerModule,
  ],
  controllers: [AssetsController],
  providers: [
    CloseConnectionsAtShutdownService,
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
  /**
   * Creates the root module, with the console of the inbox if the console is configured. The settings are a parameter,
   * because Nest needs the console's path before it injects settings.
   */
  static register({ console }: ShopSettings): DynamicModule {
    if (console === null) return { module: ShopModule };
    const { path, user, password } = console;
    const guards = [new BasicAuthGuard({ users: { [user]: password } })];
    return { module: ShopModule, imports: [PaymentsConsoleModule.register({ path, guards })] };
  }
}
