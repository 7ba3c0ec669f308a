import { Controller, HttpCode, Post, UseGuards, UseInterceptors } from '@nestjs/common';
import { AccessTokenGuard, CallingCompany } from '../auth/access-token.guard.js';
import type { Company } from '../companies/company.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { ResponseFaultInterceptor } from '../http/response-fault.interceptor.js';

@Controller('v1/webhooks/test')
@UseGuards(AccessTokenGuard)
@UseInterceptors(ResponseFaultInterceptor)
export class WebhookTestController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  /** Sends a test event. After the first attempt has ended, responds with 200 and the result of this attempt. */
  @Post()
  @HttpCode(200)
  async test(@CallingCompany() company: Company): Promise<unknown> {
    const { firstAttempt } = this.core.send(company, this.address.environment, 'webhook.test');
    return this.core.options.shapes.testDelivery(await firstAttempt);
  }
}
