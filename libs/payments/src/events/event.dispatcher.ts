import { Inject, Injectable } from '@nestjs/common';
import { PaymentsError } from '../payments.errors.js';
import { parseData } from './event-data.js';
import { HandlerRegistry } from './handler.registry.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';
import { StrayRejections } from './stray-rejections.js';

/** Runs one handler for one event. */
@Injectable()
export class EventDispatcher {
  constructor(
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(StrayRejections) private readonly strays: StrayRejections,
  ) {}

  /**
   * Resolves once the handler of that name has succeeded.
   *
   * @throws PaymentsError `handlers_invalid` where no handler has the name, `data_invalid` where `data` fails
   *   the handler's class; and whatever the handler throws, which may be anything.
   */
  async dispatch(event: PaymentEvent, context: PaymentEventContext): Promise<void> {
    const handler = this.registry.get(context.handler);
    if (handler === undefined) {
      throw new PaymentsError(
        'handlers_invalid',
        `No handler is named "${context.handler}" any more. Give its successor that name.`,
      );
    }
    const data = handler.data ? await parseData(handler.data, event) : event.data;
    // A frozen copy each, so that no handler sees what another did to the event.
    const own = Object.freeze({ ...event, data });
    await this.strays.watch(context, () => handler.invoke(own, context));
  }
}
