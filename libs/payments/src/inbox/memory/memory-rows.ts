import { createHash } from 'node:crypto';
import type {
  DeliveryAttempt,
  DeliveryState,
  IncomingEvent,
  StoredDelivery,
  StoredEvent,
} from '../inbox-store.js';
import type { Heap } from './heap.js';

/** An event in the memory store. */
export interface EventRow {
  /** What never changes. */
  readonly fixed: Omit<StoredEvent, 'raw' | 'headers' | 'repeats' | 'deliveries'>;
  /** Numbers events in the order of receipt. */
  readonly seq: number;
  /** {@link keyOf} its company and id; and its company, type and once key, if it has one. */
  readonly key: string;
  readonly onceKey: string | null;
  /** When it was received, on the monotonic clock. */
  readonly since: number;
  raw: Buffer | null;
  /** Of the body, once that was deleted: to tell a copy from a conflict. */
  digest: string | null;
  headers: StoredEvent['headers'];
  repeats: StoredEvent['repeats'];
  deliveries: DeliveryRow[];
  /** When its last delivery finished, on the monotonic clock. */
  finishedAt: number;
}

/** A delivery in the memory store. */
export interface DeliveryRow {
  readonly event: EventRow;
  readonly handler: string;
  readonly lane: Lane | null;
  state: DeliveryState;
  attempts: number;
  crashes: number;
  alone: boolean;
  token: number;
  /** Id of the worker that runs it. */
  worker: string | null;
  /** When a pending one is due, on the monotonic clock. */
  dueAt: number;
  /** When it was last claimed, and when it finished. */
  startedAt: Date;
  finishedAt: Date | null;
  lastError: string | null;
  history: readonly DeliveryAttempt[];
}

/** The deliveries of one company, handler and ordering key. At most one of them runs. */
export interface Lane {
  readonly key: string;
  /** How many deliveries are stored. */
  size: number;
  running: DeliveryRow | null;
  /** All pending ones, and those of them that are held. */
  readonly pending: Set<DeliveryRow>;
  readonly held: Heap<DeliveryRow>;
  /** The latest `occurredAt` of those that are done. */
  newestDone: number;
}

/** Texts as one key. No text but the last contains a line break, so that different texts make different keys. */
export const keyOf = (...texts: string[]): string => texts.join('\n');

/** Whether nothing is left to do. An operator may still redrive it. */
export const isFinished = ({ state }: DeliveryRow): boolean =>
  state !== 'pending' && state !== 'running';

export const digestOf = (raw: Buffer): string => createHash('sha256').update(raw).digest('base64');

/** Whether the body differs from the one that was stored. */
export function conflicts({ raw, digest }: EventRow, body: Buffer): boolean {
  return raw === null ? digest !== digestOf(body) : !raw.equals(body);
}

export function eventRow(event: IncomingEvent, seq: number, wall: number, since: number): EventRow {
  const { company, id, eventType, occurredAt, orderingKey, onceKey, stale } = event;
  const receivedAt = new Date(wall);
  return {
    fixed: { company, id, eventType, occurredAt, orderingKey, receivedAt, stale },
    seq,
    key: keyOf(company, id),
    onceKey: onceKey === null ? null : keyOf(company, eventType, onceKey),
    since,
    // A copy: the caller may reuse its buffer.
    raw: Buffer.from(event.raw),
    digest: null,
    headers: { ...event.headers },
    repeats: [],
    deliveries: [],
    finishedAt: since,
  };
}

/** The event as `find()` returns it. A tombstone keeps its deliveries only to know what newer ones were handled. */
export function describeEvent(row: EventRow, toDate: (monotonicMs: number) => Date): StoredEvent {
  const { fixed, raw, headers, repeats } = row;
  const deliveries = row.raw === null ? [] : describeDeliveries(row, toDate);
  return { ...fixed, raw: raw && Buffer.from(raw), headers: { ...headers }, repeats, deliveries };
}

/** The event as `list()` returns it. */
export function listedEvent(row: EventRow, toDate: (monotonicMs: number) => Date): StoredEvent {
  const deliveries = row.raw === null ? [] : describeDeliveries(row, toDate);
  const listed = deliveries.map((delivery) => ({ ...delivery, history: [] }));
  return { ...row.fixed, raw: null, headers: {}, repeats: [], deliveries: listed };
}

function describeDeliveries(
  { deliveries }: EventRow,
  toDate: (monotonicMs: number) => Date,
): StoredDelivery[] {
  const described = deliveries.map((delivery): StoredDelivery => {
    const { handler, state, attempts, lastError, finishedAt, history } = delivery;
    const dueAt = state === 'pending' ? toDate(delivery.dueAt) : null;
    return { handler, state, attempts, lastError, dueAt, finishedAt, history };
  });
  return described.toSorted((a, b) => (a.handler < b.handler ? -1 : 1));
}
