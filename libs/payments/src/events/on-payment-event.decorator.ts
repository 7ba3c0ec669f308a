import { checkFields, optional, optionsInvalid, whole } from '../errors/option-checks.js';
import type { OptionChecks } from '../errors/option-checks.js';
import { defineHandlerParams } from './handler-invoker.js';
import { assertPattern, OVERDUE_EVENT_TYPE } from './handler-registry.js';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentEventData,
  PaymentEventType,
  PaymentOverdueData,
} from './payment-event.js';
import { checkRetrySchedule } from './retry-schedule.js';
import type { RetrySchedule } from './retry-schedule.js';
import { isStandardSchema } from './standard-schema.js';
import type { StandardSchema } from './standard-schema.js';

/** Options of {@link OnPaymentEvent}. */
export interface OnPaymentEventOptions<D extends object = object> {
  /**
   * Name of the handler, 1 to 200 characters. The inbox stores the handler's deliveries under this name. Default: the
   * event types in alphabetical order and the method's name, such as `transaction.completed#markPaid` or
   * `payout.*|refund.*#book`. The default changes if the types or the method's name change. If you change them in an
   * application with a durable inbox, set `name` to the earlier default, so that the stored deliveries still belong to
   * the handler.
   */
  name?: string;
  /**
   * A class with class-validator rules that `event.data` must satisfy. The handler then gets `event.data` as an instance
   * of the class. If `data` breaks a rule, the delivery becomes a dead letter at once, with the code `data_invalid`, and
   * the inbox keeps the event. Fields without a rule stay in `data`. Default: none; `data` is not checked.
   */
  data?: new () => D;
  /**
   * A schema of zod, valibot, arktype or any other library with Standard Schema 1, which `event.data` must match. The
   * handler then gets the output of the schema as `event.data`. If `data` does not match, the delivery becomes a dead
   * letter at once, with the code `data_invalid` and the paths that do not match. Cannot be combined with `data`.
   * Default: none.
   */
  schema?: StandardSchema<D>;
  /**
   * Maximum number of attempts of the handler that run at the same time in one process. 1 to 1,000. Default:
   * `worker.concurrency`.
   */
  concurrency?: number;
  /**
   * Milliseconds until `context.signal` aborts and the attempt fails with the code `handler_timeout`. A handler that
   * ignores its signal continues to run while the worker retries the delivery, so pass the signal to every call that
   * takes long. 1 to 3,600,000. Default: `worker.timeoutMs`.
   */
  timeoutMs?: number;
  /**
   * When a failed delivery is retried, and after how many attempts it becomes a dead letter: `exponential({…})`,
   * `fixed([…])` or `none`. Default: `worker.retry`.
   */
  retry?: RetrySchedule;
}

export interface OnPaymentEventMetadata extends OnPaymentEventOptions {
  patterns: readonly string[];
}

/**
 * Key of the metadata of a handler ({@link OnPaymentEventMetadata}) on the function of the decorated method. On the
 * prototype, the decorator also stores `true` under this key and the method's name, so that `HandlerExplorer` notices
 * if a later decorator replaced the function.
 */
export const ON_PAYMENT_EVENT = Symbol.for('nestjs-payments:on-payment-event');

/**
 * The names of the decorated methods of each prototype in this process, to find handlers in classes that the
 * application does not provide.
 */
export const DECORATED = new Map<object, ReadonlySet<string>>();

/** The event types that a pattern matches: the pattern itself, or any type if the pattern ends in `*`. */
export type MatchedType<T extends PaymentEventType> = T extends '*' | `${string}.*` ? string : T;

/**
 * Makes the method a handler: it runs for every event of the given types, once per event. Apply the decorator to
 * methods of providers and controllers. You can apply the decorator several times to one method. Subclasses inherit the
 * handler; a method that overrides it needs its own decorator. If several classes inherit a handler, all but one of the
 * classes must override the method and give it another `name`. The module finds handlers when the application starts.
 * It does not find handlers in lazily loaded modules.
 *
 * A type is exact (`transaction.completed`), a family (`transaction.*`, at any depth) or `*` for all types.
 *
 * Each handler runs at most `concurrency` times at the same time in a process, and each attempt may take at most
 * `timeoutMs`, so a slow handler does not delay other handlers. A handler never runs for two events with the same
 * `data.transactionId` at the same time.
 *
 * An attempt succeeds when the returned promise resolves. The worker awaits the last value of a returned Observable; an
 * Observable that completes without a value fails the attempt. Guards, pipes, interceptors and filters of the method
 * and its class run, with `payments` as `ExecutionContext.getType()` and the event and its context as `getArgs()`.
 * Global guards, pipes, interceptors and filters do not run. If a guard returns `false`, the attempt fails. If a filter
 * returns a truthy value or a promise of such a value, the filter has handled the error and the delivery is done;
 * otherwise the attempt fails.
 *
 * @throws PaymentsError `options_invalid` if an option does not exist or is out of bounds.
 * @throws TypeError if a type is not a valid pattern, several decorators on one method contradict each other, or the
 *   decorator is applied to anything other than a method with a string as its name.
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
  return handlerDecorator<MatchedType<T>, D>('@OnPaymentEvent', patterns as string[], options);
}

/**
 * Makes the method a handler of expected payments that become overdue. A payment is overdue if neither a webhook
 * request nor a poll has led to an event before `dueBy` or, without `dueBy`, before the end of its poll schedule.
 * Overdue does not mean failed: an event that arrives later is handled as usual. The handler runs at least once per
 * overdue expectation. The inbox stores the event for the handler, and retries, guards and limits apply as for
 * {@link OnPaymentEvent}. The event has the payload {@link PaymentOverdueData}, and `context.source` is `overdue`. An
 * event of the payment may arrive while the handler runs or waits for a retry: `PaymentExpectations.get()` returns the
 * current state.
 *
 * @throws the same errors as {@link OnPaymentEvent}.
 * @example
 * ```ts
 * @OnPaymentOverdue()
 * async remind({ data }: PaymentOverdueEvent) {
 *   await this.support.lookInto(data.reference, data.transactionId);
 * }
 * ```
 */
export function OnPaymentOverdue<D extends object = PaymentOverdueData>(
  options: OnPaymentEventOptions<D> = {},
) {
  const types = [OVERDUE_EVENT_TYPE];
  return handlerDecorator<typeof OVERDUE_EVENT_TYPE, D>('@OnPaymentOverdue', types, options);
}

function handlerDecorator<T extends string, D extends object>(
  name: string,
  patterns: readonly string[],
  given: OnPaymentEventOptions<D>,
) {
  const options = checkFields(name, given, CHECKS);
  assertOneCheck(name, options);
  // The transaction type depends on the inbox. With `never`, a handler for any transaction type is accepted.
  return <M extends (event: PaymentEvent<T, D>, context: PaymentEventContext<never>) => unknown>(
    target: object,
    method: string,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const handler = methodOf(target, method, descriptor);
    const { patterns: earlier, ...stacked } = (Reflect.getOwnMetadata(
      ON_PAYMENT_EVENT,
      handler,
    ) ?? { patterns: [] }) as OnPaymentEventMetadata;
    const metadata: OnPaymentEventMetadata = {
      ...mergeOptions(method, stacked, options),
      // JavaScript applies the lowest decorator first, so its types come first.
      patterns: [...new Set([...earlier, ...patterns])],
    };
    assertOneCheck(name, metadata);
    Reflect.defineMetadata(ON_PAYMENT_EVENT, metadata, handler);
    Reflect.defineMetadata(ON_PAYMENT_EVENT, true, target, method);
    defineHandlerParams(target, method);
    DECORATED.set(target, new Set([...(DECORATED.get(target) ?? []), method]));
  };
}

/** @throws PaymentsError `options_invalid` if there are both a schema and a data class */
function assertOneCheck(
  name: string,
  { schema, data }: { schema?: unknown; data?: unknown },
): void {
  if (!schema || !data) return;
  throw optionsInvalid(
    `"${name}.schema" cannot be combined with "${name}.data": remove one of them.`,
  );
}

/** @throws TypeError unless `method` is a string that names an instance method: the explorer finds no other methods. */
function methodOf(target: object, method: unknown, descriptor?: PropertyDescriptor): object {
  const found: unknown = descriptor?.value;
  if (typeof target === 'function' || typeof method !== 'string' || typeof found !== 'function') {
    throw new TypeError(
      `@OnPaymentEvent is applied to ${String(method)}, which would never run: it is a static method, an accessor, a ` +
        'property, or a method whose name is a symbol. Apply it to an instance method whose name is a string.',
    );
  }
  return found;
}

const CHECKS = {
  name: optional<string>('a text', (value) => typeof value === 'string'),
  data: optional<new () => object>('a class', (value) => typeof value === 'function'),
  schema: optional<StandardSchema<object>>(
    'a schema with Standard Schema 1, for example of zod',
    isStandardSchema,
  ),
  concurrency: whole({ min: 1, max: 1000, unit: 'attempts' }),
  timeoutMs: whole({ min: 1, max: 3_600_000, unit: 'milliseconds' }),
  retry: checkRetrySchedule,
} satisfies OptionChecks<OnPaymentEventOptions>;

/**
 * @throws TypeError if two decorators of one method set the same option to different values, because they make one
 *   handler.
 */
function mergeOptions(
  method: string,
  stacked: OnPaymentEventOptions,
  options: Readonly<Record<string, unknown>>,
): OnPaymentEventOptions {
  const merged: Record<string, unknown> = { ...stacked };
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const other = (merged[option] ??= value);
    if (value === other) continue;
    throw new TypeError(
      `@OnPaymentEvent is applied to ${method} several times with different values of "${option}". All ` +
        'decorators of a method make one handler: set each option once, or write a method for each handler.',
    );
  }
  return merged;
}
