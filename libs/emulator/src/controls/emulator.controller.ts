import { Body, Controller, Get, HttpCode, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebhookEvent } from '../deliveries/delivery-request.js';
import { EmulatorCore } from '../emulator-core.js';
import { FAULTS } from '../faults/fault-plan.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { scriptedPage, sendPage } from '../pages/page-layout.js';
import type { TriggeredEvent } from '../trigger/trigger-event.js';
import { triggerEvent } from '../trigger/trigger-event.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';

/** Endpoints that only the emulator has: a description of the emulator, events of any type, and the reset. */
@Controller('emulator')
@UseGuards(SameOriginGuard)
export class EmulatorController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  /**
   * Responds to a browser with the page of payments, deliveries, faults and credentials, and to a program with a
   * description of the emulator in JSON.
   */
  @Get()
  describe(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): object | string {
    void reply.header('vary', 'accept');
    if (request.headers.accept?.includes('text/html')) {
      return sendPage(reply, scriptedPage('Payments', 'emulator-page.js'));
    }
    const { url, environment } = this.address;
    return { emulator: 'payments-emulator', environment, url, seed: this.core.random.seed };
  }

  /** Returns the faults that a fault plan may contain, with the fields of each fault. */
  @Get('faults')
  faults(): typeof FAULTS {
    return FAULTS;
  }

  @Post('events')
  sendEvent(@Body() body: object): WebhookEvent {
    return this.core.sendEvent({ environment: this.address.environment, ...body }).event;
  }

  /** Sends an event. Responds after the first attempt has ended. */
  @Post('trigger')
  @HttpCode(200)
  trigger(@Body() body: object): Promise<TriggeredEvent> {
    return triggerEvent(this.core, { environment: this.address.environment, ...body });
  }

  @Post('reset')
  @HttpCode(204)
  reset(): Promise<void> {
    return this.core.reset();
  }
}
