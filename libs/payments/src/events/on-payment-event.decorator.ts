import { assertPattern } from './event-pattern.js';
import { defineHandlerParams } from './handler.params.js';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentEventData,
  PaymentEventType,
} from './payment-event.js';

/** Options of {@link OnPaymentEvent}. */
export interface OnPaymentEventOptions<D extends object = object> {
  /**
   * The handler's name: what its deliveries are stored under. 1 to 200 characters. Default: the event types in
   * alphabetical order and the method's name, such as `transaction.completed#markPaid` or `payout.*|refund.*#book`.
   * The default changes with the types and the method, so with a durable inbox, set a name before you change them.
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

/**
 * Reflect key of {@link OnPaymentEventMetadata} on the method's function and, so that a decorator that put
 * another function in its place is noticed, of `true` on the prototype and the method's name.
 */
export const ON_PAYMENT_EVENT = Symbol.for('nestjs-payments:on-payment-event');

/** What may stand under {@link OnPaymentEvent}: a method that takes the event and, if it likes, the context. */
export type PaymentEventHandler<T extends PaymentEventType, D> = (
  event: PaymentEvent<T, D>,
  // Of any transaction: which one there is depends on the inbox.
  context: PaymentEventContext<never>,
) => unknown;

/** The event types a pattern stands for: itself, or any where it ends in `*`. */
export type MatchedType<T extends PaymentEventType> = T extends '*' | `${string}.*` ? string : T;

/**
 * Runs the method for every event of the given types, once per event. It may stand on a method of any
 * provider or controller, several times on one method, and on one a class inherits; a method that overrides
 * it needs its own. A method that several classes inherit needs an override with a `name` in all but one. Handlers are found when the application starts: those of a module loaded lazily are not.
 *
 * Types are exact (`transaction.completed`), of a family (`transaction.*`, at any depth) or all (`*`).
 *
 * The handler has succeeded once what it returns has resolved; of an Observable the last value is awaited,
 * and one that completes without any has failed. Guards, pipes, interceptors and filters that stand on the
 * method or its class run, with `ExecutionContext.getType()` being `payments` and `getArgs()` the event and
 * its context; the application's global ones do not. A guard that refuses is a failure. A filter that returns
 * (or promises) something truthy has handled the error, and the delivery is done; one that returns nothing
 * has only looked, and the delivery has failed.
 *
 * @throws TypeError where a type is no pattern, where it stands on anything but a method with a name, or
 *   where decorators stacked on one method contradict each other.
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
  const patterns: readonly unknown[] = Array.isArray(types) ? types : [types];
  if (patterns.length === 0) throw new TypeError('@OnPaymentEvent needs at least one event type.');
  patterns.forEach(assertPattern);
  return <M extends PaymentEventHandler<MatchedType<T>, D>>(
    target: object,
    method: string,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const handler = methodOf(target, method, descriptor);
    const stacked = Reflect.getOwnMetadata(ON_PAYMENT_EVENT, handler) as
      OnPaymentEventMetadata | undefined;
    const metadata: OnPaymentEventMetadata = {
      // The decorator below was applied first.
      patterns: [...new Set([...(stacked?.patterns ?? []), ...(patterns as string[])])],
      ...agree(method, stacked, options),
    };
    Reflect.defineMetadata(ON_PAYMENT_EVENT, metadata, handler);
    Reflect.defineMetadata(ON_PAYMENT_EVENT, true, target, method);
    defineHandlerParams(target, method);
  };
}

/** The function the decorator stands on. Nest finds methods of instances that are named by a string alone. */
function methodOf(target: object, method: unknown, descriptor?: PropertyDescriptor): object {
  const found: unknown = descriptor?.value;
  if (typeof target === 'function' || typeof method !== 'string' || typeof found !== 'function') {
    throw new TypeError(
      `@OnPaymentEvent stands on ${String(method)}, which is no method of instances named by a string, and ` +
        'would never run: a static or symbol-named method, an accessor or a property. Make it a method.',
    );
  }
  return found;
}

/** Stacked decorators make one handler, so only one of them may name it, or all the same. */
function agree(
  method: string,
  stacked: OnPaymentEventMetadata | undefined,
  { name, data }: OnPaymentEventOptions,
): OnPaymentEventOptions {
  const conflict =
    (stacked?.name !== undefined && name !== undefined && stacked.name !== name) ||
    (stacked?.data !== undefined && data !== undefined && stacked.data !== data);
  if (conflict) {
    throw new TypeError(
      `@OnPaymentEvent stands on ${method} several times with different options. ` +
        'They make one handler: give "name" and "data" once, or write a method for each.',
    );
  }
  const agreed: OnPaymentEventOptions = {};
  if ((name ?? stacked?.name) !== undefined) agreed.name = (name ?? stacked?.name)!;
  if ((data ?? stacked?.data) !== undefined) agreed.data = (data ?? stacked?.data)!;
  return agreed;
}
