import { Injectable } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import { parseData } from './event-data.js';
import { matchesPattern } from './event-pattern.js';
import { HandlerRegistry } from './handler-registry.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';
import { UnhandledRejections } from './unhandled-rejections.js';

/**
 * The handler of this process does not take the event's type. The event was delivered to another version of the handler,
 * with other types: during a deployment, two versions run at the same time.
 */
export class OtherVersionError extends PaymentsError {
  /** Whether something that was thrown is one. Never throws: `instanceof` does, for a revoked proxy. */
  static is(thrown: unknown): thrown is OtherVersionError {
    try {
      return thrown instanceof OtherVersionError;
    } catch {
      return false;
    }
  }

  constructor(
    handler: string,
    readonly eventType: string,
  ) {
    super(
      'handlers_invalid',
      `The handler "${handler}" of this process does not take the event type "${eventType}", but another version of ` +
        'it did. Add the type to its @OnPaymentEvent, or skip the delivery.',
    );
  }
}

/** Runs one handler for one event. */
@Injectable()
export class EventDispatcher {
  constructor(
    private readonly registry: HandlerRegistry,
    private readonly unhandled: UnhandledRejections,
  ) {}

  /**
   * Resolves once the handler of that name has succeeded.
   *
   * @throws PaymentsError `handlers_invalid` if no handler has the name, or it does not take the event's type
   *   ({@link OtherVersionError}); `data_invalid` if `data` fails the handler's class; and whatever the handler throws,
   *   which may be anything.
   */
  async dispatch(event: PaymentEvent, context: PaymentEventContext): Promise<void> {
    const handler = this.registry.get(context.handler);
    if (handler === undefined) {
      throw new PaymentsError(
        'handlers_invalid',
        `No handler is named "${context.handler}" any more. Give its successor that name.`,
      );
    }
    if (!handler.patterns.some((pattern) => matchesPattern(pattern, event.eventType))) {
      throw new OtherVersionError(handler.name, event.eventType);
    }
    const data = handler.data ? await parseData(handler.data, event) : event.data;
    // A frozen copy each, so that no handler sees what another did to the event.
    const own = Object.freeze({ ...event, data });
    await this.unhandled.watch(context, () => handler.invoke(own, context));
  }
}
