import 'reflect-metadata';
import type { DynamicModule } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { TokenController } from './auth/token.controller.js';
import { CheckoutController } from './checkout/checkout.controller.js';
import { CompaniesController } from './controls/companies.controller.js';
import { ControlTokenGuard } from './controls/control-token.guard.js';
import { DeliveriesController } from './controls/deliveries.controller.js';
import { EmulatorController } from './controls/emulator.controller.js';
import { OverviewController } from './controls/overview.controller.js';
import { TransactionsController } from './controls/transactions.controller.js';
import { WebhookTestController } from './deliveries/webhook-test.controller.js';
import { EmulatorCore } from './emulator-core.js';
import { EnvironmentAddress } from './http/environment-address.js';
import { ResponseFaultInjector } from './http/response-fault-injector.js';
import type { PageFile } from './pages/page-files.js';
import { PAGE_FILES, PagesController } from './pages/pages.controller.js';
import { PaymentsController } from './transactions/payments.controller.js';
import { TransactionLookupController } from './transactions/transaction-lookup.controller.js';

/** Connects the endpoints of one environment's server to the core that both servers share. */
@Module({})
export class EmulatorModule {
  static of(
    core: EmulatorCore,
    address: EnvironmentAddress,
    injector: ResponseFaultInjector,
    files: ReadonlyMap<string, PageFile>,
  ): DynamicModule {
    return {
      module: EmulatorModule,
      controllers: [
        TokenController,
        TransactionLookupController,
        WebhookTestController,
        EmulatorController,
        OverviewController,
        CompaniesController,
        TransactionsController,
        PaymentsController,
        CheckoutController,
        DeliveriesController,
        PagesController,
      ],
      providers: [
        { provide: EmulatorCore, useValue: core },
        { provide: EnvironmentAddress, useValue: address },
        { provide: ResponseFaultInjector, useValue: injector },
        { provide: PAGE_FILES, useValue: files },
        // Global, so that a new controller is protected by default.
        { provide: APP_GUARD, useClass: ControlTokenGuard },
      ],
    };
  }
}
