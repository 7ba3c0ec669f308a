import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  UseGuards,
} from '@nestjs/common';
import type { CompletedTransaction } from '../emulator.core.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import { checkInput } from '../emulator.input.js';
import { TransactionFilter } from '../transactions/transaction.inputs.js';
import type { Transaction } from '../transactions/transaction.record.js';
import { SameOriginGuard } from './same-origin.guard.js';

/** The emulator's own: transactions made, completed and declined without a token. */
@Controller('emulator/transactions')
@UseGuards(SameOriginGuard)
export class TransactionsController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  @Post()
  create(@Body() body: object): Transaction {
    return this.core.createTransaction({ environment: this.host.environment, ...body });
  }

  @Get()
  list(@Query() query: object): Transaction[] {
    return this.core.transactions.list(checkInput(TransactionFilter, { ...query }));
  }

  @Get(':id')
  get(@Param('id') id: string): Transaction {
    return this.core.transactions.get(id);
  }

  /** Answers at once; the delivery is on its way. */
  @Post(':id/complete')
  @HttpCode(200)
  complete(@Param('id') id: string): CompletedTransaction {
    return this.core.complete(id);
  }

  @Post(':id/fail')
  @HttpCode(200)
  fail(@Param('id') id: string): Transaction {
    return this.core.fail(id);
  }
}
