import { Body, Controller, Get, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common';
import { DeliveryFilter, DeliverySearch } from '../deliveries/delivery-inputs.js';
import type { DeliveryAttempt } from '../deliveries/delivery-attempt.js';
import type { DeliveryPage } from '../deliveries/delivery-summary.js';
import { EmulatorCore } from '../emulator-core.js';
import { validateInput } from '../validate-input.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';

/** Endpoints that only the emulator has: they read the delivery log, send events again, and skip delays. */
@Controller('emulator/deliveries')
@UseGuards(SameOriginGuard)
export class DeliveriesController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Get()
  list(@Query() query: object): DeliveryAttempt[] {
    return this.core.log.list(validateInput(DeliveryFilter, { ...query }));
  }

  /** Returns one page of the delivery log, newest attempt first, without bodies and headers. */
  @Get('search')
  search(@Query() query: object): DeliveryPage {
    return this.core.log.search(validateInput(DeliverySearch, { ...query }));
  }

  @Get(':id')
  get(@Param('id') id: string): DeliveryAttempt {
    return this.core.log.get(id).record;
  }

  /** Signs a body and sends it unchanged. Responds after the first attempt has ended. */
  @Post()
  @HttpCode(200)
  send(@Body() body: object): Promise<DeliveryAttempt> {
    return this.core.sendBody({ environment: this.address.environment, ...body });
  }

  /** Sends the event of a logged attempt again. Responds with the new attempt after this attempt has ended. */
  @Post(':id/redeliver')
  @HttpCode(200)
  redeliver(@Param('id') id: string): Promise<DeliveryAttempt> {
    return this.core.deliveries.redeliver(id);
  }

  /** Skips the waiting times of all deliveries, and responds after all deliveries have ended. */
  @Post('flush')
  @HttpCode(204)
  flush(): Promise<void> {
    return this.core.deliveries.flush();
  }
}
