import { HISTORY_LENGTH } from '../delivery-history.js';
import type { HistoryEntry } from '../delivery-history.js';
import type { DeliveryState, IncomingEvent, StoredEvent } from '../inbox-store.js';
import type { HandlerQueue } from './handler-queue.js';
import type { Linked } from './linked-list.js';
import type { PriorityQueue, Queued } from './priority-queue.js';

/** The rows share it: most have no repeats, and no history before their first attempt. */
const NONE: readonly never[] = Object.freeze([]);

/** An event in the memory store. */
export class EventRow implements Queued<EventRow>, Linked<EventRow> {
  /** What never changes. */
  readonly fixed: Pick<StoredEvent, 'company' | 'id' | 'eventType' | 'orderingKey' | 'stale'>;
  /** In milliseconds since the epoch: a number takes less memory than a `Date`. */
  readonly occurredMs: number;
  /** The two keys that copies of it have. */
  readonly idKey: string;
  readonly onceKey: string | null;
  /** `null` in a tombstone, which has the SHA-256 of the body instead. */
  raw: Buffer | null;
  digest: string | null = null;
  headers: StoredEvent['headers'];
  repeats: StoredEvent['repeats'] = NONE;
  /** A tombstone keeps them, because their ordering keys know what was done. */
  deliveries: readonly DeliveryRow[] = NONE;
  /** When its last delivery finished, on the monotonic clock. `null` before. */
  finishedAt: number | null = null;
  queue: PriorityQueue<EventRow> | null = null;
  position = 0;
  next: EventRow | null = null;
  previous: EventRow | null = null;

  /**
   * @param seq numbers events in the order of receipt.
   * @param since the time of receipt on the monotonic clock.
   */
  constructor(
    event: IncomingEvent,
    readonly receivedMs: number,
    readonly since: number,
    readonly seq: number,
  ) {
    const { company, id, eventType, occurredAt, orderingKey, onceKey, stale } = event;
    this.fixed = { company, id, eventType, orderingKey, stale };
    this.occurredMs = occurredAt.getTime();
    // No company, id or type contains a line break.
    this.idKey = `${company}\n${id}`;
    this.onceKey = onceKey === null ? null : `${company}\n${eventType}\n${onceKey}`;
    // A copy: the caller may reuse its buffer.
    this.raw = Buffer.from(event.raw);
    this.headers = { ...event.headers };
  }
}

/** A delivery in the memory store. */
export class DeliveryRow implements Queued<DeliveryRow> {
  readonly key: OrderingKey | null;
  state: DeliveryState = 'pending';
  attempts = 0;
  crashes = 0;
  alone = false;
  /** Fencing token, and id of the worker. They are of the last claim. */
  token = 0;
  worker = '';
  /** When it was last claimed, and when it finished, in milliseconds since the epoch. */
  startedAt = 0;
  finishedAt: number | null = null;
  lastError: string | null = null;
  /** The attempts that ended without success, and those before a redrive; see {@link historyOf}. */
  earlier: readonly HistoryEntry[] = NONE;
  queue: PriorityQueue<DeliveryRow> | null = null;
  position = 0;

  /** @param dueAt when it is due if it is pending, on the monotonic clock. */
  constructor(
    readonly event: EventRow,
    readonly handler: HandlerQueue,
    public dueAt: number,
  ) {
    this.key = handler.joinKey(event);
  }
}

/** The attempts of a delivery that have ended. */
export function historyOf(row: DeliveryRow): readonly HistoryEntry[] {
  const { state, attempts, startedAt, finishedAt } = row;
  return state === 'done'
    ? [
        ...row.earlier.slice(1 - HISTORY_LENGTH),
        [attempts, startedAt, finishedAt! - startedAt, 'd'],
      ]
    : row.earlier;
}

/** The deliveries of one company, handler and ordering key. At most one of them runs. */
export interface OrderingKey {
  readonly name: string;
  /** How many deliveries are stored. */
  size: number;
  running: DeliveryRow | null;
  /** `null` before the first one: most deliveries are assigned on receipt. */
  pending: Set<DeliveryRow> | null;
  /** The pending ones that are due and wait for the running one. */
  held: PriorityQueue<DeliveryRow> | null;
  /** The latest {@link EventRow.occurredMs} of those that are done. */
  newestDone: number;
}
