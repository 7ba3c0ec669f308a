import { Controller, Get } from '@nestjs/common';
import { PaymentInbox } from 'nestjs-payments';
import type { InboxStats } from 'nestjs-payments';

/** `GET /inbox`: how many deliveries are pending, running and dead, for monitoring. */
@Controller('inbox')
export class InboxController {
  constructor(private readonly inbox: PaymentInbox) {}

  @Get()
  stats(): Promise<InboxStats> {
    return this.inbox.stats();
  }
}
