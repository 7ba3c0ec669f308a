import { createHash } from 'node:crypto';
import type { DeliveryState, IncomingEvent, StoredDelivery, StoredEvent } from './inbox.store.js';

/** An event in the memory inbox. */
export interface EventRow {
  readonly company: string;
  readonly id: string;
  readonly dedupeKey: string;
  readonly eventType: string;
  readonly orderingKey: string | null;
  readonly receivedAt: Date;
  /** Of the body: a copy is told from a conflict long after the body itself was let go. */
  readonly digest: string;
  raw: Buffer | null;
  readonly deliveries: DeliveryRow[];
  /** On the monotonic clock. */
  finishedAt: number;
}

/** A delivery of an event in the memory inbox. */
export interface DeliveryRow {
  readonly event: EventRow;
  readonly handler: string;
  /** Grows with every delivery made: of two that are due, the older goes first. */
  readonly order: number;
  /** What no two running deliveries share; `null` where the event has no ordering key. */
  readonly exclusion: string | null;
  state: DeliveryState;
  attempts: number;
  lastError: string | null;
  /** When it is due or, running, when its lease ends, on the monotonic clock. */
  dueAt: number;
  token: number;
}

/** A row for the event, without deliveries. */
export function eventRow(event: IncomingEvent, receivedAt: Date): EventRow {
  const { company, id, dedupeKey, eventType, orderingKey, raw } = event;
  return {
    company,
    id,
    dedupeKey,
    eventType,
    orderingKey,
    receivedAt,
    digest: digestOf(raw),
    raw,
    deliveries: [],
    finishedAt: 0,
  };
}

/** A pending row for one handler of the event. */
export function deliveryRow(
  event: EventRow,
  handler: string,
  order: number,
  dueAt: number,
): DeliveryRow {
  const { company, orderingKey } = event;
  // Neither a company's id nor a handler's name holds a line break, so no two make one key.
  const exclusion = orderingKey === null ? null : `${company}\n${handler}\n${orderingKey}`;
  return {
    event,
    handler,
    order,
    exclusion,
    state: 'pending',
    attempts: 0,
    lastError: null,
    dueAt,
    token: 0,
  };
}

/** The event as the store shows it. */
export function storedEvent(row: EventRow): StoredEvent {
  const { company, id, eventType, receivedAt, raw } = row;
  const copy = raw && Buffer.from(raw);
  return { company, id, eventType, receivedAt, raw: copy, deliveries: storedDeliveries(row) };
}

/** The event's deliveries as the store shows them. */
export function storedDeliveries({ deliveries }: EventRow): StoredDelivery[] {
  return deliveries.map(({ handler, state, attempts, lastError }) => ({
    handler,
    state,
    attempts,
    lastError,
  }));
}

/** What tells two bodies apart. */
export function digestOf(raw: Buffer): string {
  return createHash('sha256').update(raw).digest('base64');
}
