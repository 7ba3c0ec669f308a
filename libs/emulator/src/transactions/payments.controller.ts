import { Body, Controller, Post, UseGuards, UseInterceptors } from '@nestjs/common';
import { AccessTokenGuard, CallingCompany } from '../auth/access-token.guard.js';
import { checkInput } from '../check-input.js';
import type { Company } from '../companies/company.js';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { ResponseFaultInterceptor } from '../http/response-fault.interceptor.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import type { TransactionFields, TransactionKind } from './transaction.js';
import { toTransactionFields } from './transaction.js';
import { NewPayment } from './transaction-inputs.js';

/**
 * Emulator only: substitutes for the service's endpoints that create payments, which the service does not document. They
 * require the company's access token as the service's endpoints do. A merchant calls them with its ordinary client, at
 * paths from its configuration.
 */
@Controller('emulator')
@WithoutControlToken()
@UseGuards(SameOriginGuard, AccessTokenGuard)
@UseInterceptors(ResponseFaultInterceptor)
export class PaymentsController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Post('checkout-invoices')
  createCheckoutInvoice(
    @CallingCompany() company: Company,
    @Body() body: unknown,
  ): TransactionFields & { checkoutUrl: string } {
    const fields = this.#create('checkout-invoice', company, body);
    return { ...fields, checkoutUrl: this.address.checkoutUrl(fields.transactionId) };
  }

  @Post('stk-pushes')
  createStkPush(@CallingCompany() company: Company, @Body() body: unknown): TransactionFields {
    return this.#create('stk-push', company, body);
  }

  @Post('payouts')
  createPayout(@CallingCompany() company: Company, @Body() body: unknown): TransactionFields {
    return this.#create('payout', company, body);
  }

  #create(kind: TransactionKind, company: Company, body: unknown): TransactionFields {
    const payment = checkInput(NewPayment, body);
    return toTransactionFields(
      this.core.transactions.create(kind, company, this.address.environment, payment),
    );
  }
}
