import { randomUUID } from 'node:crypto';
import type { PaymentEvent, PaymentEventData, PaymentEventType } from '../events/payment-event.js';

/** What {@link paymentEvent} needs as `data`: any part of the fields it has defaults for, else all fields. */
export type EventData<T extends PaymentEventType> = T extends 'transaction.completed'
  ? Partial<PaymentEventData<T>>
  : PaymentEventData<T>;

/** The fields of an event next to its type and `data`. */
export type EnvelopeFields = Partial<Pick<PaymentEvent, 'id' | 'timestamp' | 'metadata'>>;

/** The arguments after the type. `data` is optional, unless `PaymentEventMap` gives the type required fields. */
export type PaymentEventArguments<T extends PaymentEventType> =
  Partial<EventData<T>> extends EventData<T>
    ? [data?: EventData<T>, envelope?: EnvelopeFields]
    : [data: EventData<T>, envelope?: EnvelopeFields];

/**
 * Builds a complete event, as a handler receives it and as the service sends it.
 *
 * `data` of a `transaction.completed` event is merged over a realistic payment with new ids. `data` of any other
 * type is used as given (default: an empty object).
 *
 * @param type the event type. `data` has the type that `PaymentEventMap` gives it.
 * @param rest `data`; and `id` (default: a new UUID), `timestamp` (default: now) and `metadata` (default: empty).
 * @example
 * ```ts
 * const event = paymentEvent('transaction.completed', { amount: 350, externalReference: 'order-1' });
 * const same = paymentEvent('transaction.completed', { amount: 350 }, { id: event.id });
 * ```
 */
export function paymentEvent<T extends PaymentEventType>(
  type: T,
  ...rest: PaymentEventArguments<T>
): PaymentEvent<T> {
  const [data, envelope] = rest;
  return {
    id: randomUUID(),
    eventType: type,
    timestamp: new Date().toISOString(),
    data: {
      ...(type === 'transaction.completed' ? completed() : {}),
      ...data,
    } as PaymentEventData<T>,
    metadata: {},
    ...envelope,
  };
}

function completed(): PaymentEventData<'transaction.completed'> {
  return {
    transactionId: randomUUID(),
    status: 'complete',
    amount: 1500,
    accountReference: 'INV-1001',
    externalReference: 'order-77',
  };
}
