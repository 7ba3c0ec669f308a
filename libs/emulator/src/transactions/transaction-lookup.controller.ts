import {
  Controller,
  Get,
  NotFoundException,
  Param,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { AccessTokenGuard, CallingCompany } from '../auth/access-token.guard.js';
import type { Company } from '../companies/company.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { ResponseFaultInterceptor } from '../http/response-fault.interceptor.js';
import { lookUp } from './look-up.js';

@Controller('v1/transactions')
@UseGuards(AccessTokenGuard)
@UseInterceptors(ResponseFaultInterceptor)
export class TransactionLookupController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Get(':id')
  get(@Param('id') id: string, @CallingCompany() company: Company): unknown {
    const transaction = this.core.transactions.find(id, company, this.address.environment);
    const shown = transaction && lookUp(this.core, transaction);
    if (!shown) throw new NotFoundException('there is no transaction with this id');
    return this.core.options.shapes.transaction(shown);
  }
}
