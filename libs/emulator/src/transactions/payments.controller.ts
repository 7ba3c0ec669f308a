import { Body, Controller, Get, Post, Query, UseGuards, UseInterceptors } from '@nestjs/common';
import { AccessTokenGuard, CallingCompany } from '../auth/access-token.guard.js';
import { validateInput } from '../validate-input.js';
import type { Company } from '../companies/company.js';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { ResponseFaultInterceptor } from '../http/response-fault.interceptor.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { lookUp } from './look-up.js';
import type { TransactionFields, TransactionKind } from './transaction.js';
import { toTransactionFields } from './transaction.js';
import { NewPayment, PaymentQuery } from './transaction-inputs.js';

/**
 * Endpoints that only the emulator has. These endpoints create and find payments, because the service does not document
 * endpoints for these operations. Like the service's endpoints, they require the company's access token. A merchant
 * calls them with the client that calls the service. The paths are part of the client's configuration.
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

  /**
   * Finds the company's transactions by the merchant's own reference: at most 100, newest first. The faults `notFound`
   * and `otherStatus` can change the response.
   */
  @Get('payments')
  findPayments(
    @CallingCompany() company: Company,
    @Query() query: object,
  ): { transactions: TransactionFields[] } {
    const { externalReference } = validateInput(PaymentQuery, { ...query });
    const { environment } = this.address;
    const found = this.core.transactions.findByReference(externalReference, company, environment);
    const shown = found.flatMap((each) => lookUp(this.core, each) ?? []);
    return { transactions: shown.map(toTransactionFields) };
  }

  #create(kind: TransactionKind, company: Company, body: unknown): TransactionFields {
    const payment = validateInput(NewPayment, body);
    return toTransactionFields(
      this.core.transactions.create(kind, company, this.address.environment, payment),
    );
  }
}
