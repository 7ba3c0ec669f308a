import { Controller, Get } from '@nestjs/common';
import { PaymentInbox } from 'nestjs-payments';
import type { InboxStats } from 'nestjs-payments';

/** The statistics of the inbox, `GET /api/inbox`, for monitoring. */
@Controller('api/inbox')
export class InboxController {
  constructor(private readonly inbox: PaymentInbox) {}

  /** Returns the number of pending, running and dead deliveries of each handler. */
  @Get()
  stats(): Promise<InboxStats> {
    return this.inbox.stats();
  }
}
