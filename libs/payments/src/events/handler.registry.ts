import { PaymentsError } from '../payments.errors.js';
import { matchesPattern } from './event-pattern.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';

/** A method found under `@OnPaymentEvent`, ready to run. */
export interface PaymentHandler {
  /** Unique name, under which its deliveries are stored. */
  readonly name: string;
  /** The event types it handles. */
  readonly patterns: readonly string[];
  /** Class-validator class of `event.data`, where the decorator names one. */
  readonly data?: new () => object;
  /** Runs the method with its guards, pipes, interceptors and filters. */
  invoke(event: PaymentEvent, context: PaymentEventContext): Promise<unknown>;
}

// Names become keys in a database, as an envelope's do.
const NAME = /^[^\p{Cc}]{1,200}$/u;

/** The application's handlers, by name and by event type. */
export class HandlerRegistry {
  readonly #handlers = new Map<string, PaymentHandler>();

  /** @throws PaymentsError `handlers_invalid` where the name is taken or no name. */
  add(handler: PaymentHandler): void {
    if (this.#handlers.has(handler.name)) {
      throw new PaymentsError(
        'handlers_invalid',
        `Two payment handlers are named "${handler.name}". Deliveries are stored under the name, so give one ` +
          "of them another: @OnPaymentEvent(…, { name: '…' }). Where one class is provided by two modules, " +
          'provide it in one and export it.',
      );
    }
    if (!NAME.test(handler.name)) {
      throw new PaymentsError(
        'handlers_invalid',
        `A payment handler's name has 1 to 200 characters, none of them a control character, and ` +
          `${JSON.stringify(handler.name.slice(0, 40))} (${handler.name.length} long) does not. Give it ` +
          "another: @OnPaymentEvent(…, { name: '…' }).",
      );
    }
    this.#handlers.set(handler.name, handler);
  }

  get(name: string): PaymentHandler | undefined {
    return this.#handlers.get(name);
  }

  names(): string[] {
    return [...this.#handlers.keys()];
  }

  /** The names of the handlers of an event type, in the order they were found. */
  matching(eventType: string): string[] {
    return [...this.#handlers.values()]
      .filter(({ patterns }) => patterns.some((pattern) => matchesPattern(pattern, eventType)))
      .map(({ name }) => name);
  }
}
