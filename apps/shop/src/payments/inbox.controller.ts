import { Controller, Get } from '@nestjs/common';
import { PaymentInbox } from 'nestjs-payments';
import type { InboxStats } from 'nestjs-payments';

/** The statistics of the inbox, `GET /api/inbox`, for monitoring. */
@Controller('api/inbox')
export class InboxController {
  constructor(private readonly inbox: PaymentInbox) {}

  /** How many deliveries are pending, running and dead, for each handler. */
  @Get()
  stats(): Promise<InboxStats> {
    return this.inbox.stats();
  }
}
