import {
  Controller,
  Get,
  NotFoundException,
  Param,
  UseGuards,
  UseInterceptors,
  Inject,
} from '@nestjs/common';
import { FaultInterceptor } from '../answers/fault.interceptor.js';
import { BearerGuard } from '../auth/bearer.guard.js';
import { Caller } from '../auth/caller.decorator.js';
import type { Company } from '../companies/company.record.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';

/** `GET /v1/transactions/{id}` (section 4 of the service's page). */
@Controller('v1/transactions')
@UseGuards(BearerGuard)
@UseInterceptors(FaultInterceptor)
export class TransactionController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  @Get(':id')
  get(@Param('id') id: string, @Caller() caller: Company): unknown {
    const transaction = this.core.transactions.find(id, caller, this.host.environment);
    if (!transaction) throw new NotFoundException('no such transaction');
    return this.core.options.shapes.transaction(transaction);
  }
}
