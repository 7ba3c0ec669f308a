import { assertPattern } from './event-pattern.js';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentEventData,
  PaymentEventType,
} from './payment-event.js';

/** Options of {@link OnPaymentEvent}. */
export interface OnPaymentEventOptions<D extends object = object> {
  /**
   * The handler's name: what its deliveries are stored under, so it must stay the same when code is renamed
   * or moved. 1 to 200 characters. Default: `Class.method`.
   */
  name?: string;
  /**
   * A class with class-validator rules that `event.data` must satisfy. `data` then arrives as an instance of
   * it. An event whose `data` fails goes to the dead letters at once, with code `data_invalid`, and is kept.
   * Fields without a rule are left in place.
   */
  data?: new () => D;
}

/** What {@link OnPaymentEvent} leaves on a method. */
export interface OnPaymentEventMetadata {
  patterns: readonly string[];
  name?: string;
  data?: new () => object;
}

/** Reflect key of {@link OnPaymentEventMetadata}, on the method's function. */
export const ON_PAYMENT_EVENT = Symbol.for('nestjs-payments:on-payment-event');
/** Key under which Nest keeps the parameters of a handler, so that pipes run on the event. */
export const HANDLER_PARAMS = 'nestjs-payments:params';

/** What may stand under {@link OnPaymentEvent}: a method that takes the event and, if it likes, the context. */
export type PaymentEventHandler<T extends PaymentEventType, D> = (
  event: PaymentEvent<T, D>,
  context: PaymentEventContext,
) => unknown;

/** The event types a pattern stands for: itself, or any where it ends in `*`. */
export type MatchedType<T extends PaymentEventType> = T extends '*' | `${string}.*` ? string : T;

/**
 * Runs the method for every event of the given types, once per event. It may stand on a method of any
 * provider or controller, several times on one method, and on one a class inherits.
 *
 * Types are exact (`transaction.completed`), of a family (`transaction.*`, at any depth) or all (`*`).
 *
 * @throws TypeError where a type is no pattern, or decorators stacked on one method contradict each other.
 * @example
 * ```ts
 * @OnPaymentEvent('transaction.completed')
 * async markPaid(event: PaymentEvent<'transaction.completed'>, context: PaymentEventContext) {}
 * ```
 */
export function OnPaymentEvent<
  const T extends PaymentEventType,
  D extends object = PaymentEventData<MatchedType<T>>,
>(types: T | readonly T[], options: OnPaymentEventOptions<D> = {}) {
  const patterns: readonly string[] = typeof types === 'string' ? [types] : types;
  if (patterns.length === 0) throw new TypeError('@OnPaymentEvent needs at least one event type.');
  patterns.forEach(assertPattern);
  return <M extends PaymentEventHandler<MatchedType<T>, D>>(
    target: object,
    method: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const handler = descriptor.value!;
    const stacked = Reflect.getOwnMetadata(ON_PAYMENT_EVENT, handler) as
      OnPaymentEventMetadata | undefined;
    const metadata: OnPaymentEventMetadata = {
      patterns: [...new Set([...(stacked?.patterns ?? []), ...patterns])],
      ...agree(method, stacked, options),
    };
    Reflect.defineMetadata(ON_PAYMENT_EVENT, metadata, handler);
    // Nest runs pipes on parameters it knows of; '3' stands for a body, so that a ValidationPipe looks at it.
    const params = { '3:0': { index: 0, pipes: [] }, 'context:1': { index: 1, pipes: [] } };
    Reflect.defineMetadata(HANDLER_PARAMS, params, target.constructor, method);
  };
}

/** Stacked decorators make one handler, so only one of them may name it, or all the same. */
function agree(
  method: string | symbol,
  stacked: OnPaymentEventMetadata | undefined,
  { name, data }: OnPaymentEventOptions,
): OnPaymentEventOptions {
  const conflict =
    (stacked?.name !== undefined && name !== undefined && stacked.name !== name) ||
    (stacked?.data !== undefined && data !== undefined && stacked.data !== data);
  if (conflict) {
    throw new TypeError(
      `@OnPaymentEvent stands on ${String(method)} several times with different options. ` +
        'They make one handler: give "name" and "data" once, or write a method for each.',
    );
  }
  const agreed: OnPaymentEventOptions = {};
  if ((name ?? stacked?.name) !== undefined) agreed.name = (name ?? stacked?.name)!;
  if ((data ?? stacked?.data) !== undefined) agreed.data = (data ?? stacked?.data)!;
  return agreed;
}
