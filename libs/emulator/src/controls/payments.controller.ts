import { Body, Controller, Post, UseGuards, UseInterceptors, Inject } from '@nestjs/common';
import { FaultInterceptor } from '../answers/fault.interceptor.js';
import { BearerGuard } from '../auth/bearer.guard.js';
import { Caller } from '../auth/caller.decorator.js';
import type { Company } from '../companies/company.record.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import { checkInput } from '../emulator.input.js';
import { NewPayment } from '../transactions/transaction.inputs.js';
import type { TransactionFields, TransactionKind } from '../transactions/transaction.record.js';
import { toTransactionFields } from '../transactions/transaction.record.js';
import { WithoutControlToken } from './control-token.guard.js';
import { SameOriginGuard } from './same-origin.guard.js';

/**
 * The emulator's own stand-ins for the service's endpoints that create payments, which its page
 * does not show. They take the company's token as any call of the service does, so that a merchant
 * reaches them with its ordinary client at a path from its configuration.
 */
@Controller('emulator')
@WithoutControlToken()
@UseGuards(SameOriginGuard, BearerGuard)
@UseInterceptors(FaultInterceptor)
export class PaymentsController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  @Post('checkout-invoices')
  createCheckoutInvoice(
    @Caller() caller: Company,
    @Body() body: unknown,
  ): TransactionFields & { checkoutUrl: string } {
    const fields = this.#create('checkout-invoice', caller, body);
    return { ...fields, checkoutUrl: this.host.checkoutUrl(fields.transactionId) };
  }

  @Post('stk-pushes')
  createStkPush(@Caller() caller: Company, @Body() body: unknown): TransactionFields {
    return this.#create('stk-push', caller, body);
  }

  @Post('payouts')
  createPayout(@Caller() caller: Company, @Body() body: unknown): TransactionFields {
    return this.#create('payout', caller, body);
  }

  #create(kind: TransactionKind, caller: Company, body: unknown): TransactionFields {
    const payment = checkInput(NewPayment, body);
    return toTransactionFields(
      this.core.transactions.create(kind, caller, this.host.environment, payment),
    );
  }
}
