import { assertPattern } from './event-pattern.js';
import { defineHandlerParams } from './handler-params.js';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentEventData,
  PaymentEventType,
} from './payment-event.js';
import { assertRetrySchedule } from './retry-schedule.js';
import type { RetrySchedule } from './retry-schedule.js';

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
  /**
   * How many runs of the handler are under way at the same time in one process, at most. 1 to 1,000. Default:
   * `worker.concurrency`.
   */
  concurrency?: number;
  /**
   * Milliseconds until `context.signal` aborts and the attempt fails with the code `handler_timeout`. A handler that
   * ignores its signal goes on, but its attempt has failed and is retried: pass the signal to what takes long.
   * 1 to 3,600,000. Default: `worker.timeoutMs`.
   */
  timeoutMs?: number;
  /**
   * When a failed delivery runs again, and after how many attempts it is dead: `exponential({…})`, `fixed([…])` or
   * `none`. Default: `worker.retry`.
   */
  retry?: RetrySchedule;
}

/** What {@link OnPaymentEvent} stores on a method. */
export interface OnPaymentEventMetadata extends OnPaymentEventOptions {
  patterns: readonly string[];
}

/**
 * Reflect key of {@link OnPaymentEventMetadata} on the method's function and, so that a decorator that put
 * another function in its place is noticed, of `true` on the prototype and the method's name.
 */
export const ON_PAYMENT_EVENT = Symbol.for('nestjs-payments:on-payment-event');

/** Signature of a handler method: it takes the event and, if it needs it, the context. */
export type PaymentEventHandler<T extends PaymentEventType, D> = (
  event: PaymentEvent<T, D>,
  // Of any transaction: which one there is depends on the inbox.
  context: PaymentEventContext<never>,
) => unknown;

/** The event types that a pattern matches: itself, or any if it ends in `*`. */
export type MatchedType<T extends PaymentEventType> = T extends '*' | `${string}.*` ? string : T;

/**
 * Runs the method for every event of the given types, once per event. Use it on methods of providers and controllers,
 * also several times on one method. A class inherits it; a method that overrides another needs its own. If several
 * classes inherit a method, all but one need an override with a `name`. Handlers are found when the application starts:
 * those of lazily loaded modules are not.
 *
 * Types are exact (`transaction.completed`), of a family (`transaction.*`, at any depth) or all (`*`).
 *
 * Each handler runs at most `concurrency` times at the same time in a process, and has `timeoutMs` for each attempt, so
 * that a slow handler delays no other. Two events with one `data.transactionId` never run at the same time in it.
 *
 * The handler has succeeded when what it returns has resolved. Of an Observable, the last value is awaited; one that
 * completes without a value has failed. Guards, pipes, interceptors and filters of the method or its class run, with
 * `payments` as `ExecutionContext.getType()` and the event and its context as `getArgs()`; the application's global ones
 * do not. If a guard refuses, the attempt fails. A filter that returns (or promises) something truthy has handled the
 * error, and the delivery is done; if it returns nothing, the attempt fails.
 *
 * @throws TypeError if a type is no pattern, an option is out of bounds, the decorator is applied to anything but a
 *   method with a name, or several decorators on one method contradict each other.
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
  assertOptions(options);
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

/** The decorated function. Nest finds only methods of instances that are named by a string. */
function methodOf(target: object, method: unknown, descriptor?: PropertyDescriptor): object {
  const found: unknown = descriptor?.value;
  if (typeof target === 'function' || typeof method !== 'string' || typeof found !== 'function') {
    throw new TypeError(
      `@OnPaymentEvent is applied to ${String(method)}, which would never run: it is a static method, a method named ` +
        'by a symbol, an accessor or a property. Apply it to a method of instances that is named by a string.',
    );
  }
  return found;
}

const OPTIONS = ['name', 'data', 'concurrency', 'timeoutMs', 'retry'] as const;

/** Decorators on one method make one handler, so each option is set once, or always to the same value. */
function agree(
  method: string,
  stacked: OnPaymentEventMetadata | undefined,
  options: OnPaymentEventOptions,
): OnPaymentEventOptions {
  const agreed: Record<string, unknown> = {};
  for (const option of OPTIONS) {
    const [one, other] = [options[option], stacked?.[option]];
    if (one !== undefined && other !== undefined && one !== other) {
      throw new TypeError(
        `@OnPaymentEvent is applied to ${method} several times with different values of "${option}". The decorators ` +
          'make one handler: set each option once, or write a method for each.',
      );
    }
    if ((one ?? other) !== undefined) agreed[option] = one ?? other;
  }
  return agreed;
}

/** @throws TypeError for a value out of bounds. */
function assertOptions({ concurrency, timeoutMs, retry }: OnPaymentEventOptions): void {
  assertWhole('concurrency', concurrency, 1000, 'runs');
  assertWhole('timeoutMs', timeoutMs, 3_600_000, 'milliseconds');
  if (retry !== undefined) assertRetrySchedule(retry, '@OnPaymentEvent: "retry"');
}

function assertWhole(option: string, value: unknown, max: number, unit: string): void {
  if (value === undefined) return;
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max) return;
  throw new TypeError(
    `@OnPaymentEvent: "${option}" must be a whole number of ${unit} from 1 to ${max}. Leave it out for ` +
      `"worker.${option}".`,
  );
}
