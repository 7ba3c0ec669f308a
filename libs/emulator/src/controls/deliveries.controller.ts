import { Controller, Get, HttpCode, Param, Post, Query, UseGuards, Inject } from '@nestjs/common';
import { DeliveryFilter, DeliverySearch } from '../deliveries/delivery.inputs.js';
import type { DeliveryRecord } from '../deliveries/delivery.record.js';
import type { DeliveryPage } from '../deliveries/delivery.summary.js';
import { EmulatorCore } from '../emulator.core.js';
import { checkInput } from '../emulator.input.js';
import { SameOriginGuard } from './same-origin.guard.js';

/** The emulator's own: the delivery log, redelivery, and waiting for what is under way. */
@Controller('emulator/deliveries')
@UseGuards(SameOriginGuard)
export class DeliveriesController {
  constructor(@Inject(EmulatorCore) private readonly core: EmulatorCore) {}

  @Get()
  list(@Query() query: object): DeliveryRecord[] {
    return this.core.log.list(checkInput(DeliveryFilter, { ...query }));
  }

  /** A page of the log, the newest first, without bodies and headers. */
  @Get('search')
  search(@Query() query: object): DeliveryPage {
    return this.core.log.search(checkInput(DeliverySearch, { ...query }));
  }

  @Get(':id')
  get(@Param('id') id: string): DeliveryRecord {
    return this.core.log.get(id).record;
  }

  /** Answers with the new attempt once it has ended. */
  @Post(':id/redeliver')
  @HttpCode(200)
  redeliver(@Param('id') id: string): Promise<DeliveryRecord> {
    return this.core.deliveries.redeliver(id);
  }

  /** Lets nothing wait any longer, and answers once nothing is under way. */
  @Post('flush')
  @HttpCode(204)
  flush(): Promise<void> {
    return this.core.deliveries.flush();
  }
}
