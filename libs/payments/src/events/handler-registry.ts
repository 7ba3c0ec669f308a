import { PaymentsError } from '../errors/payments-error.js';
import { matchesPattern } from './event-pattern.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';
import type { RetrySchedule } from './retry-schedule.js';

/** How a handler runs, as far as its decorator says; for the rest, the option `worker` applies. */
export interface HandlerOptions {
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  readonly retry?: RetrySchedule;
}

/** A method found under `@OnPaymentEvent`, ready to run. */
export interface PaymentHandler {
  /** Unique name, under which its deliveries are stored. */
  readonly name: string;
  /** Its class, method and module, for messages. */
  readonly source: string;
  /** The event types it handles. */
  readonly patterns: readonly string[];
  /** Class-validator class of `event.data`, if the decorator names one. */
  readonly data?: new () => object;
  readonly options: HandlerOptions;
  /** Runs the method with its guards, pipes, interceptors and filters. */
  invoke(event: PaymentEvent, context: PaymentEventContext): Promise<unknown>;
}

// Names are keys in a database, like an envelope's id.
const NAME = /^[^\p{Cc}]{1,200}$/u;

/**
 * The name of a handler without a `name`, such as `transaction.completed#markPaid`: its event types in alphabetical
 * order, and its method. Not its class, which bundlers rename, so that a new bundle still finds what is stored.
 */
export function defaultName(patterns: readonly string[], method: string): string {
  return `${patterns.toSorted().join('|')}#${method}`;
}

/** The application's handlers, by name and by event type. */
export class HandlerRegistry {
  readonly #handlers = new Map<string, PaymentHandler>();

  /** @throws PaymentsError `handlers_invalid` if the name is invalid or belongs to another handler. */
  add(handler: PaymentHandler): void {
    const { name, source } = handler;
    const other = this.#handlers.get(name);
    if (other !== undefined) {
      throw new PaymentsError(
        'handlers_invalid',
        `Two payment handlers are named "${name}": ${other.source} and ${source}. Deliveries are stored under the ` +
          "name, so set another for one of them: @OnPaymentEvent(…, { name: '…' }). If two modules provide one " +
          'class, provide it in one of them and export it there.',
      );
    }
    if (!NAME.test(name)) {
      throw new PaymentsError(
        'handlers_invalid',
        `The name of the payment handler ${source} is invalid: a name has 1 to 200 characters, none of them a ` +
          `control character, and ${JSON.stringify(name.slice(0, 40))} has ${name.length}. The default name is made ` +
          "of the event types and the method's name. Set another: @OnPaymentEvent(…, { name: '…' }).",
      );
    }
    this.#handlers.set(name, handler);
  }

  get(name: string): PaymentHandler | undefined {
    return this.#handlers.get(name);
  }

  all(): PaymentHandler[] {
    return [...this.#handlers.values()];
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
