import { createHash } from 'node:crypto';
import type { DueHeap } from './due.heap.js';
import type { Place } from './waiting.line.js';
import type {
  DeliveryAttempt,
  DeliveryState,
  IncomingEvent,
  StoredDelivery,
  StoredEvent,
} from '../inbox-store.js';

/**
 * An event as the memory store keeps it. There are as many as the inbox keeps, each until it is forgotten, and
 * what they are made of is what the garbage collector has to do: hence numbers for times, and no copy of a key.
 */
export interface EventRow {
  /** Counts events in the order of receipt. */
  readonly seq: number;
  readonly company: string;
  readonly id: string;
  readonly dedupeKey: string;
  readonly eventType: string;
  /** The event's own time, in milliseconds since the epoch. */
  readonly occurredAt: number;
  readonly orderingKey: string | null;
  readonly stale: boolean;
  /** {@link keyOf} its company and id, and its company and ordering key. */
  readonly key: string;
  readonly ordering: string | null;
  /** In milliseconds since the epoch. */
  readonly receivedAt: number;
  /** The same on the monotonic clock. */
  readonly since: number;
  raw: Buffer | null;
  /** Of the body, once that was let go: a copy is told from a conflict long after. */
  digest: string | null;
  /** Empty once the body was let go. */
  headers: Readonly<Record<string, string>>;
  deliveries: DeliveryRow[];
  /** All events of its company and ordering key, where it has one. */
  related: EventRow[] | null;
  /** When its last delivery finished, on the monotonic clock. */
  finishedAt: number;
  /** Its place among the finished, and among those of them that have their body. */
  finished: Place<EventRow> | null;
  body: Place<EventRow> | null;
}

/** A delivery as the memory store keeps it. */
export interface DeliveryRow {
  readonly event: EventRow;
  readonly handler: string;
  /** Grows with every delivery made: of two that are due, the older goes first. */
  readonly order: number;
  state: DeliveryState;
  attempts: number;
  lastError: string | null;
  /** When it is due or, running, when its lease ends, on the monotonic clock. */
  dueAt: number;
  /** In milliseconds since the epoch. */
  finishedAt: number | null;
  token: number;
  /** When it was last claimed, in milliseconds since the epoch. */
  startedAt: number;
  history: readonly AttemptRow[];
  /** The heap it stands in, and where. */
  heap: DueHeap | null;
  place: number;
}

/** An attempt as the memory store keeps it: times in milliseconds since the epoch. */
export type AttemptRow = Omit<DeliveryAttempt, 'startedAt' | 'endedAt'> & {
  readonly startedAt: number;
  readonly endedAt: number;
};

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
  const { company, id, dedupeKey, eventType, occurredAt, orderingKey, raw, headers, stale } = event;
  return {
    seq,
    company,
    id,
    dedupeKey,
    eventType,
    occurredAt: occurredAt.getTime(),
    orderingKey,
    stale,
    key: keyOf(company, id),
    ordering: orderingKey === null ? null : keyOf(company, orderingKey),
    receivedAt: now.wall,
    since: now.monotonic,
    // A copy: the caller's buffer is the caller's.
    raw: Buffer.from(raw),
    digest: null,
    headers: { ...headers },
    deliveries: [],
    related: null,
    finishedAt: 0,
    finished: null,
    body: null,
  };
}

/** What all deliveries have in common that were never attempted. */
const NONE: readonly AttemptRow[] = Object.freeze([]);

/** A new delivery to one handler of the event, to be put into the queue. */
export function deliveryRow(event: EventRow, handler: string, order: number): DeliveryRow {
  return {
    event,
    handler,
    order,
    state: 'pending',
    attempts: 0,
    lastError: null,
    dueAt: 0,
    finishedAt: null,
    token: 0,
    startedAt: event.receivedAt,
    history: NONE,
    heap: null,
    place: 0,
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
  const { company, id, eventType, occurredAt, orderingKey, receivedAt, raw, headers, stale } = row;
  const deliveries = row.deliveries.map((delivery) => describeDelivery(delivery, toDate));
  return {
    company,
    id,
    eventType,
    occurredAt: new Date(occurredAt),
    orderingKey,
    receivedAt: new Date(receivedAt),
    raw: raw && Buffer.from(raw),
    headers: { ...headers },
    stale,
    deliveries: deliveries.toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
  };
}

function describeDelivery(row: DeliveryRow, toDate: (monotonicMs: number) => Date): StoredDelivery {
  const { handler, state, attempts, lastError, finishedAt } = row;
  return {
    handler,
    state,
    attempts,
    lastError,
    dueAt: isFinished(row) ? null : toDate(row.dueAt),
    finishedAt: finishedAt === null ? null : new Date(finishedAt),
    history: row.history.map((attempt) => ({
      ...attempt,
      startedAt: new Date(attempt.startedAt),
      endedAt: new Date(attempt.endedAt),
    })),
  };
}
