import { Body, Controller, Get, HttpCode, Inject, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebhookEvent } from '../deliveries/webhook.event.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import { sendPage } from '../pages/page.reply.js';
import { scriptedPage } from '../pages/page.shell.js';
import type { TriggeredEvent } from '../trigger/trigger.js';
import { triggerEvent } from '../trigger/trigger.js';
import { SameOriginGuard } from './same-origin.guard.js';

/** The emulator's own: what it is, events of any type, and starting over. */
@Controller('emulator')
@UseGuards(SameOriginGuard)
export class EmulatorController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  /** For a browser the page with the delivery log and the faults; for a program what this is. */
  @Get()
  describe(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): object | string {
    void reply.header('vary', 'accept');
    if (request.headers.accept?.includes('text/html')) {
      return sendPage(reply, scriptedPage('Deliveries and faults', 'control.js'));
    }
    const { url, environment } = this.host;
    return { emulator: 'payments-emulator', environment, url, seed: this.core.random.seed };
  }

  @Post('events')
  sendEvent(@Body() body: object): WebhookEvent {
    return this.core.sendEvent({ environment: this.host.environment, ...body }).event;
  }

  /** Answers once the first delivery of the event has ended. */
  @Post('trigger')
  @HttpCode(200)
  trigger(@Body() body: object): Promise<TriggeredEvent> {
    return triggerEvent(this.core, { environment: this.host.environment, ...body });
  }

  @Post('reset')
  @HttpCode(204)
  reset(): Promise<void> {
    return this.core.reset();
  }
}
