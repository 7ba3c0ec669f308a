import { Body, Controller, Get, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common';
import { DeliveryFilter, DeliverySearch } from '../deliveries/delivery-inputs.js';
import type { DeliveryRecord } from '../deliveries/delivery-record.js';
import type { DeliveryPage } from '../deliveries/delivery-summary.js';
import { EmulatorCore } from '../emulator-core.js';
import { validateInput } from '../validate-input.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';

/** Endpoints that only the emulator has: the delivery log, redelivery, and the end of all delays. */
@Controller('emulator/deliveries')
@UseGuards(SameOriginGuard)
export class DeliveriesController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Get()
  list(@Query() query: object): DeliveryRecord[] {
    return this.core.log.list(validateInput(DeliveryFilter, { ...query }));
  }

  /** Returns a page of the log, newest first, without bodies and headers. */
  @Get('search')
  search(@Query() query: object): DeliveryPage {
    return this.core.log.search(validateInput(DeliverySearch, { ...query }));
  }

  @Get(':id')
  get(@Param('id') id: string): DeliveryRecord {
    return this.core.log.get(id).record;
  }

  /** Signs and sends a body as it is. Responds after the first delivery of the event has ended. */
  @Post()
  @HttpCode(200)
  send(@Body() body: object): Promise<DeliveryRecord> {
    return this.core.sendBody({ environment: this.address.environment, ...body });
  }

  /** Sends the event again. Responds with the new attempt after the attempt has ended. */
  @Post(':id/redeliver')
  @HttpCode(200)
  redeliver(@Param('id') id: string): Promise<DeliveryRecord> {
    return this.core.deliveries.redeliver(id);
  }

  /** Ends all delays, and responds after all deliveries have ended. */
  @Post('flush')
  @HttpCode(204)
  flush(): Promise<void> {
    return this.core.deliveries.flush();
  }
}
