import { createHash } from 'node:crypto';
import type {
  DeliveryAttempt,
  DeliveryState,
  IncomingEvent,
  StoredDelivery,
  StoredEvent,
} from '../inbox.records.js';

/** An event as the memory store keeps it. Plain numbers are times of the monotonic clock, in milliseconds. */
export interface EventRow {
  /** Counts events in the order of receipt. */
  readonly seq: number;
  readonly company: string;
  readonly id: string;
  readonly dedupeKey: string;
  readonly eventType: string;
  readonly occurredAt: Date;
  readonly orderingKey: string | null;
  /** What it is found by: made once, since a shelf that is full asks for them with every event that comes. */
  readonly keys: EventKeys;
  readonly receivedAt: Date;
  /** The same on the monotonic clock. */
  readonly since: number;
  raw: Buffer | null;
  /** Of the body, once that was let go: a copy is told from a conflict long after. */
  digest: string | null;
  /** Empty once the body was let go. */
  headers: Readonly<Record<string, string>>;
  deliveries: DeliveryRow[];
  /** When its last delivery finished. */
  finishedAt: number;
}

/** An event's id, dedupe key and ordering key, each together with its company. */
export interface EventKeys {
  readonly id: string;
  readonly dedupe: string;
  readonly ordering: string | null;
}

/** A delivery as the memory store keeps it. */
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
  /** When it is due or, running, when its lease ends. */
  dueAt: number;
  finishedAt: Date | null;
  token: number;
  /** When it was last claimed, by the wall clock. */
  startedAt: Date;
  history: readonly DeliveryAttempt[];
}

/** Whether nothing is left to do: an operator may still redrive it. */
export function isFinished({ state }: DeliveryRow): boolean {
  return state === 'done' || state === 'dead' || state === 'skipped';
}

/** Two texts as one key. A company's id holds no line break, so no two pairs make one. */
export function keyOf(company: string, key: string): string {
  return `${company}\n${key}`;
}

/** Whether the body is not the one the event came with. */
export function conflicts({ raw, digest }: EventRow, body: Buffer): boolean {
  return raw === null ? digest !== digestOf(body) : !raw.equals(body);
}

export function keysOf({
  company,
  id,
  dedupeKey,
  orderingKey,
}: Pick<IncomingEvent, 'company' | 'id' | 'dedupeKey' | 'orderingKey'>): EventKeys {
  const idKey = keyOf(company, id);
  return {
    id: idKey,
    dedupe: dedupeKey === id ? idKey : keyOf(company, dedupeKey),
    ordering: orderingKey === null ? null : keyOf(company, orderingKey),
  };
}

/** What tells two bodies apart. */
export function digestOf(raw: Buffer): string {
  return createHash('sha256').update(raw).digest('base64');
}

/** A new event's row, without deliveries. */
export function eventRow(
  event: IncomingEvent,
  seq: number,
  now: { wall: number; monotonic: number },
): EventRow {
  const { company, id, dedupeKey, eventType, occurredAt, orderingKey, raw, headers } = event;
  return {
    seq,
    company,
    id,
    dedupeKey,
    eventType,
    occurredAt,
    orderingKey,
    keys: keysOf(event),
    receivedAt: new Date(now.wall),
    since: now.monotonic,
    // A copy: the caller's buffer is the caller's.
    raw: Buffer.from(raw),
    digest: null,
    headers: { ...headers },
    deliveries: [],
    finishedAt: 0,
  };
}

/** A new delivery to one handler of the event, to be put into the queue. */
export function deliveryRow(event: EventRow, handler: string, order: number): DeliveryRow {
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
    dueAt: 0,
    finishedAt: null,
    token: 0,
    startedAt: event.receivedAt,
    history: [],
  };
}

/** The row as a list shows it; `toDate` makes a time of a monotonic one. */
export function listedEvent(row: EventRow, toDate: (monotonicMs: number) => Date): StoredEvent {
  const event = describeEvent(row, toDate);
  const deliveries = event.deliveries.map((delivery) => ({ ...delivery, history: [] }));
  return { ...event, raw: null, headers: {}, deliveries };
}

/** The row as the contract shows it, whole. */
export function describeEvent(row: EventRow, toDate: (monotonicMs: number) => Date): StoredEvent {
  const { company, id, eventType, occurredAt, orderingKey, receivedAt, raw, headers } = row;
  const deliveries = row.deliveries.map((delivery): StoredDelivery => {
    const { handler, state, attempts, lastError, dueAt: due, finishedAt, history } = delivery;
    const dueAt = isFinished(delivery) ? null : toDate(due);
    return { handler, state, attempts, lastError, dueAt, finishedAt, history: [...history] };
  });
  return {
    company,
    id,
    eventType,
    occurredAt,
    orderingKey,
    receivedAt,
    raw: raw && Buffer.from(raw),
    headers: { ...headers },
    deliveries: deliveries.toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
  };
}
