import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';

/** A merchant's handler, which keeps what it was shown. */
@Injectable()
export class Orders {
  readonly seen: { event: PaymentEvent; context: PaymentEventContext }[] = [];

  @OnPaymentEvent('transaction.completed')
  markPaid(event: PaymentEvent, context: PaymentEventContext): void {
    this.seen.push({ event, context });
  }

  /** How often the event of that id was handled. */
  count(id: string): number {
    return this.seen.filter(({ event }) => event.id === id).length;
  }
}
