import { Body, Controller, Get, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common';
import type { CompletedTransaction } from '../emulator-core.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { validateInput } from '../validate-input.js';
import { TransactionFilter } from '../transactions/transaction-inputs.js';
import type { Transaction } from '../transactions/transaction.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';

/**
 * Endpoints that only the emulator has: they create, list, complete and decline transactions without an access token.
 */
@Controller('emulator/transactions')
@UseGuards(SameOriginGuard)
export class TransactionsController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Post()
  create(@Body() body: object): Transaction {
    return this.core.createTransaction({ environment: this.address.environment, ...body });
  }

  @Get()
  list(@Query() query: object): Transaction[] {
    return this.core.transactions.list(validateInput(TransactionFilter, { ...query }));
  }

  @Get(':id')
  get(@Param('id') id: string): Transaction {
    return this.core.transactions.get(id);
  }

  /** Completes a transaction. Responds at once, without waiting for the delivery of the event. */
  @Post(':id/complete')
  @HttpCode(200)
  complete(@Param('id') id: string): CompletedTransaction {
    return this.core.complete(id);
  }

  /** Completes the transaction `delayMs` milliseconds later. Responds at once. */
  @Post(':id/complete-later')
  @HttpCode(200)
  completeLater(@Param('id') id: string, @Body() body: unknown): Transaction {
    return this.core.completeLater(id, body);
  }

  @Post(':id/fail')
  @HttpCode(200)
  fail(@Param('id') id: string): Transaction {
    return this.core.fail(id);
  }
}
