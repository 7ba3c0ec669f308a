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
   * Creates the root module, with the console of the inbox for the user `operator` if the console has a password. The
   * settings are a parameter, because Nest needs the imports of a module before it injects settings.
   */
  static register({ consolePassword }: ShopSettings): DynamicModule {
    if (consolePassword === null) return { module: ShopModule };
    const guards = [new BasicAuthGuard({ users: { operator: consolePassword } })];
    const registered = PaymentsConsoleModule.register({ path: '/console', guards });
    return { module: ShopModule, imports: [registered] };
  }
}
