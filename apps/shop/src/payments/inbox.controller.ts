import { Controller, Get } from '@nestjs/common';
import { PaymentInbox } from 'nestjs-payments';
import type { InboxStats } from 'nestjs-payments';

/** `GET /inbox`: how many deliveries wait, run, are done and are dead, for whoever watches over the shop. */
@Controller('inbox')
export class InboxController {
  constructor(private readonly inbox: PaymentInbox) {}

  @Get()
  stats(): Promise<InboxStats> {
    return this.inbox.stats();
  }
}
