import 'reflect-metadata';
import type { DynamicModule } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AnswerSpoiler } from './answers/answer.spoiler.js';
import { TokenController } from './auth/token.controller.js';
import { CheckoutController } from './checkout/checkout.controller.js';
import { CompaniesController } from './controls/companies.controller.js';
import { ControlTokenGuard } from './controls/control-token.guard.js';
import { DeliveriesController } from './controls/deliveries.controller.js';
import { EmulatorController } from './controls/emulator.controller.js';
import { OverviewController } from './controls/overview.controller.js';
import { PaymentsController } from './controls/payments.controller.js';
import { TransactionsController } from './controls/transactions.controller.js';
import { WebhookTestController } from './deliveries/webhook-test.controller.js';
import { EmulatorCore } from './emulator.core.js';
import { EmulatorHost } from './emulator.host.js';
import type { PageFile } from './pages/page.files.js';
import { PAGE_FILES, PagesController } from './pages/pages.controller.js';
import { TransactionController } from './transactions/transaction.controller.js';

/** Wires one host's endpoints to the core that both hosts share. */
@Module({})
export class EmulatorModule {
  static of(
    core: EmulatorCore,
    host: EmulatorHost,
    spoiler: AnswerSpoiler,
    files: ReadonlyMap<string, PageFile>,
  ): DynamicModule {
    return {
      module: EmulatorModule,
      controllers: [
        TokenController,
        TransactionController,
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
        { provide: EmulatorHost, useValue: host },
        { provide: AnswerSpoiler, useValue: spoiler },
        { provide: PAGE_FILES, useValue: files },
        // For every controller, so that a new one is not open by accident.
        { provide: APP_GUARD, useClass: ControlTokenGuard },
      ],
    };
  }
}
