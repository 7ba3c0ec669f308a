import { Module } from '@nestjs/common';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { openTelemetry } from 'nestjs-payments/otel';
import { DatabaseModule } from '../database/database.module.js';
import { ShopDatabase } from '../database/shop-database.js';
import { OrdersModule } from '../orders/orders.module.js';
import { shopConfig } from '../shop-config.js';
import type { ShopSettings } from '../shop-config.js';
import { summaryOf } from './event-summary.js';
import { InboxController } from './inbox.controller.js';
import { PaymentHandler } from './payment-handler.js';
import { UnpaidOrderHandler } from './unpaid-order-handler.js';
import { reconcileOptions } from './reconcile-options.js';

/** Configures `nestjs-payments`, which serves `POST /webhooks/payments`, and provides the handlers of its events. */
@Module({
  imports: [
    PaymentsModule.forRootAsync({
      isGlobal: true,
      imports: [DatabaseModule],
      inject: [ShopDatabase, shopConfig.KEY],
      useFactory: ({ inbox }: ShopDatabase, settings: ShopSettings): PaymentsModuleOptions => ({
        ...readPaymentsEnvironment(),
        inbox,
        worker: { leaseMs: settings.leaseMs },
        reconcile: reconcileOptions(settings),
        summary: summaryOf,
        // This observer records nothing unless an SDK of OpenTelemetry runs in the process.
        observers: [openTelemetry()],
      }),
    }),
    DatabaseModule,
    OrdersModule,
  ],
  controllers: [InboxController],
  providers: [PaymentHandler, UnpaidOrderHandler],
})
export class ShopPaymentsModule {}
