import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';
import type { RetrySchedule } from './retry-schedule.js';
import type { StandardSchema } from './standard-schema.js';

/** Limits and retries of one handler, from its decorator. For a field that is left out, the option `worker` applies. */
export interface HandlerOptions {
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  readonly retry?: RetrySchedule;
}

export interface PaymentHandler {
  /** Unique name. The inbox stores the handler's deliveries under this name. */
  readonly name: string;
  /** The handler's class, method and module, for messages. */
  readonly source: string;
  readonly patterns: readonly string[];
  /** Class with the class-validator rules of `event.data`, if the decorator names such a class. */
  readonly data?: (new () => object) | undefined;
  /** Schema of `event.data`, if the decorator names one. */
  readonly schema?: StandardSchema<object> | undefined;
  readonly options: HandlerOptions;
  /** Runs the method with its guards, pipes, interceptors and filters. */
  invoke(event: PaymentEvent, context: PaymentEventContext): Promise<unknown>;
}

/** Prefix of the names of handlers and event types that belong to the module itself. */
const RESERVED = '@payments/';

/** Type of the event that the module stores if an expected payment becomes overdue; see `OnPaymentOverdue`. */
export const OVERDUE_EVENT_TYPE = '@payments/overdue';

export function isReserved(name: string): boolean {
  return name.startsWith(RESERVED);
}

// Handler names are keys in a database, like the ids of events.
const NAME = /^[^\p{Cc}]{1,200}$/u;

/**
 * Returns the name of a handler whose decorator sets no `name`: the event types in alphabetical order and the name of
 * the method, such as `transaction.completed#markPaid`. The class is not part of the name, because bundlers rename
 * classes, and a new bundle must find the stored deliveries.
 */
export function defaultName(patterns: readonly string[], method: string): string {
  const types = patterns.map((type) => (isReserved(type) ? type.slice(RESERVED.length) : type));
  return `${types.toSorted().join('|')}#${method}`;
}

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
          "handler's name, so set another name for one of the two: @OnPaymentEvent(…, { name: '…' }). If two modules " +
          'provide the same class, provide it in one of them and export it there.',
      );
    }
    if (isReserved(name)) {
      throw new PaymentsError(
        'handlers_invalid',
        `The payment handler ${source} is named "${name}", and names that begin with "${RESERVED}" are reserved for ` +
          "the module. Set another name: @OnPaymentEvent(…, { name: '…' }).",
      );
    }
    if (!NAME.test(name)) {
      throw new PaymentsError(
        'handlers_invalid',
        `The name of the payment handler ${source} is invalid: a name has 1 to 200 characters and no control ` +
          `characters; ${JSON.stringify(name.slice(0, 40))} has ${name.length} characters. The default name is made ` +
          "of the event types and the method's name. Set another name: @OnPaymentEvent(…, { name: '…' }).",
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
}

/**
 * Whether a pattern matches an event type. A pattern is an exact type, `family.*` for every type that begins with
 * `family.`, or `*` for every type. A reserved type is only matched by the exact type.
 */
export function matchesPattern(pattern: string, eventType: string): boolean {
  if (isReserved(eventType)) return pattern === eventType;
  if (pattern === '*') return true;
  if (pattern.endsWith('.*')) return eventType.startsWith(pattern.slice(0, -1));
  return pattern === eventType;
}

/**
 * @throws TypeError if `pattern` is not a string, is empty, is reserved, or contains a `*` that is not part of a final
 *   `.*`. The pattern `*` itself is valid.
 */
export function assertPattern(pattern: unknown): asserts pattern is string {
  const valid =
    typeof pattern === 'string' &&
    (pattern === '*' || /^[^*]+$/.test(pattern.replace(/\.\*$/, '')));
  if (!valid) {
    const given =
      typeof pattern === 'string' ? `"${pattern}"` : `a value of type ${typeof pattern}`;
    throw new TypeError(`@OnPaymentEvent accepts an event type, "family.*" or "*", not ${given}.`);
  }
  if (isReserved(pattern)) {
    throw new TypeError(
      `@OnPaymentEvent accepts no event type that begins with "${RESERVED}", because these types are reserved for the ` +
        'module. For overdue payments, use @OnPaymentOverdue().',
    );
  }
}

/** Maximum number of edits between a handled event type and its probable misspelling. */
const MAX_EDITS = 2;

/** Returns the exact event type in `patterns` of which `eventType` is probably a misspelling. */
export function similarType(eventType: string, patterns: Iterable<string>): string | undefined {
  let closest: string | undefined;
  let fewest = MAX_EDITS + 1;
  for (const pattern of patterns) {
    if (pattern.endsWith('*')) continue;
    const edits = countEdits(pattern, eventType, fewest - 1);
    if (edits < fewest) [closest, fewest] = [pattern, edits];
  }
  return closest;
}

/**
 * Returns how many edits turn `a` into `b`; infinite if more than `max`. An edit inserts, deletes or replaces a
 * character, or swaps it with the next character.
 */
function countEdits(a: string, b: string, max: number): number {
  if (a === b) return 0;
  if (a[0] === b[0]) return countEdits(a.slice(1), b.slice(1), max);
  if (max <= 0) return Infinity;
  const swapped = a[0] === b[1] && a[1] === b[0];
  const others = [
    countEdits(a.slice(1), b, max - 1),
    countEdits(a, b.slice(1), max - 1),
    countEdits(a.slice(1), b.slice(1), max - 1),
    swapped ? countEdits(a.slice(2), b.slice(2), max - 1) : Infinity,
  ];
  return 1 + Math.min(...others);
}
