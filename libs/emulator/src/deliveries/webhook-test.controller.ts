import { Controller, HttpCode, Post, UseGuards, UseInterceptors, Inject } from '@nestjs/common';
import { FaultInterceptor } from '../answers/fault.interceptor.js';
import { BearerGuard } from '../auth/bearer.guard.js';
import { Caller } from '../auth/caller.decorator.js';
import type { Company } from '../companies/company.record.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';

/** `POST /v1/webhooks/test` (section 4 of the service's page). */
@Controller('v1/webhooks/test')
@UseGuards(BearerGuard)
@UseInterceptors(FaultInterceptor)
export class WebhookTestController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  /** Answers once the first attempt has ended: 200 with whether it succeeded. */
  @Post()
  @HttpCode(200)
  async test(@Caller() caller: Company): Promise<unknown> {
    const { firstAttempt } = this.core.send(caller, this.host.environment, 'webhook.test');
    return this.core.options.shapes.testDelivery(await firstAttempt);
  }
}
