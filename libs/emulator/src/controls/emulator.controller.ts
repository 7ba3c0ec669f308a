import { Body, Controller, Get, HttpCode, Post, UseGuards, Inject } from '@nestjs/common';
import type { WebhookEvent } from '../deliveries/webhook.event.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import { SameOriginGuard } from './same-origin.guard.js';

/** The emulator's own: what it is, events of any type, and starting over. */
@Controller('emulator')
@UseGuards(SameOriginGuard)
export class EmulatorController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  @Get()
  describe(): object {
    const { url, environment } = this.host;
    return { emulator: 'payments-emulator', environment, url, seed: this.core.random.seed };
  }

  @Post('events')
  sendEvent(@Body() body: object): WebhookEvent {
    return this.core.sendEvent({ environment: this.host.environment, ...body }).event;
  }

  @Post('reset')
  @HttpCode(204)
  reset(): Promise<void> {
    return this.core.reset();
  }
}
