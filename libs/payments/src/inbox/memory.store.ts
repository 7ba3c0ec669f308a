import { createHash } from 'node:crypto';
import { PaymentsError } from '../payments.errors.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type {
  ClaimedDelivery,
  DeliveryState,
  IncomingEvent,
  InboxStore,
  Lease,
  StoredEvent,
  StoreReceipt,
} from './inbox.store.js';

/** The limits of a {@link MemoryStore}; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
}

interface EventRow {
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
  finishedAt: number;
}

interface DeliveryRow {
  readonly event: EventRow;
  readonly handler: string;
  state: DeliveryState;
  attempts: number;
  lastError: string | null;
  /** When it is due or, running, when its lease ends. */
  dueAt: number;
  token: number;
}

/** The store behind `memoryInbox()`. It counts on the monotonic clock: nothing in it outlives the process. */
export class MemoryStore implements InboxStore {
  readonly capabilities = Object.freeze({ durable: false });
  readonly #byDedupeKey = new Map<string, EventRow>();
  readonly #byId = new Map<string, EventRow>();
  /** Deliveries that are pending or running, oldest first. */
  readonly #unfinished = new Set<DeliveryRow>();
  /** Events without any of those, the longest finished first. */
  readonly #finished = new Set<EventRow>();
  #bytes = 0;

  constructor(
    private readonly limits: MemoryLimits,
    private readonly runtime: PaymentsRuntime,
  ) {}

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    this.#forgetExpired();
    this.#makeRoom(events.filter((event) => this.#known(event) === undefined));
    return events.map((event) => {
      const known = this.#known(event);
      if (known === undefined) return receipt('stored', this.#insert(event));
      const conflict = known.id === event.id && known.digest !== digestOf(event.raw);
      return receipt(conflict ? 'conflict' : 'duplicate', known);
    });
  }

  async claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]> {
    const now = this.runtime.monotonic();
    const claimed: ClaimedDelivery[] = [];
    const busy = this.#busyKeys(now);
    for (const row of this.#unfinished) {
      if (claimed.length === request.limit) break;
      const key = exclusionKey(row);
      if (row.dueAt > now || busy.has(key) || !request.handlers.includes(row.handler)) continue;
      if (row.event.orderingKey !== null) busy.add(key);
      row.state = 'running';
      row.attempts += 1;
      row.token += 1;
      row.dueAt = now + request.leaseMs;
      const { company, id, receivedAt, raw } = row.event;
      claimed.push({
        company,
        id,
        handler: row.handler,
        token: row.token,
        attempt: row.attempts,
        receivedAt,
        // Bodies of unfinished events are never let go.
        raw: raw!,
      });
    }
    return claimed;
  }

  async extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.dueAt = this.runtime.monotonic() + leaseMs;
    });
  }

  async complete(lease: Lease): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.state = 'done';
      this.#settle(row);
    });
  }

  async fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.lastError = failure.error;
      if (failure.retryInMs === null) {
        row.state = 'dead';
        this.#settle(row);
      } else {
        row.state = 'pending';
        row.dueAt = this.runtime.monotonic() + failure.retryInMs;
      }
    });
  }

  async expedite(company: string, id: string): Promise<void> {
    const event = this.#byId.get(eventKey(company, id));
    // Without its body it cannot run again: it has been finished too long.
    if (event === undefined || event.raw === null) return;
    for (const row of event.deliveries) {
      if (row.state !== 'pending' && row.state !== 'dead') continue;
      row.state = 'pending';
      row.dueAt = this.runtime.monotonic();
      this.#unfinished.add(row);
      this.#finished.delete(event);
    }
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    let next = Infinity;
    for (const row of this.#unfinished) {
      if (handlers.includes(row.handler)) next = Math.min(next, row.dueAt);
    }
    return next === Infinity ? null : next - this.runtime.monotonic();
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.#byId.get(eventKey(company, id));
    return row && { ...describe(row), raw: row.raw && Buffer.from(row.raw) };
  }

  #known(event: IncomingEvent): EventRow | undefined {
    return (
      this.#byDedupeKey.get(eventKey(event.company, event.dedupeKey)) ??
      this.#byId.get(eventKey(event.company, event.id))
    );
  }

  #insert(event: IncomingEvent): EventRow {
    const { company, id, dedupeKey, eventType, orderingKey } = event;
    const row: EventRow = {
      company,
      id,
      dedupeKey,
      eventType,
      orderingKey,
      receivedAt: new Date(this.runtime.now()),
      digest: digestOf(event.raw),
      raw: event.raw,
      deliveries: [],
      finishedAt: 0,
    };
    for (const handler of event.handlers) {
      const delivery: DeliveryRow = {
        event: row,
        handler,
        state: 'pending',
        attempts: 0,
        lastError: null,
        dueAt: this.runtime.monotonic(),
        token: 0,
      };
      row.deliveries.push(delivery);
      this.#unfinished.add(delivery);
    }
    this.#byId.set(eventKey(company, id), row);
    this.#byDedupeKey.set(eventKey(company, dedupeKey), row);
    this.#bytes += event.raw.byteLength;
    if (row.deliveries.length === 0) this.#finish(row);
    return row;
  }

  /** Lets go of finished events until those to come fit: of bodies first, then of whole tombstones. */
  #makeRoom(events: readonly IncomingEvent[]): void {
    const bytes = events.reduce((sum, { raw }) => sum + raw.byteLength, this.#bytes);
    let excess = bytes - this.limits.maxBytes;
    const unfinished = this.#byId.size - this.#finished.size;
    const finishedBytes = [...this.#finished].reduce((sum, { raw }) => sum + (raw?.length ?? 0), 0);
    if (unfinished + events.length > this.limits.maxEvents || excess > finishedBytes) {
      throw new PaymentsError(
        'inbox_full',
        'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
          '"maxBytes", look at what holds the handlers up, or keep the inbox in a database.',
      );
    }
    for (const row of this.#finished) {
      if (excess <= 0) break;
      excess -= this.#dropBody(row);
    }
    for (const row of this.#finished) {
      if (this.#byId.size + events.length <= this.limits.maxEvents) break;
      this.#forget(row);
    }
  }

  #forgetExpired(): void {
    const oldest = this.runtime.monotonic() - this.limits.retentionMs;
    for (const row of this.#finished) {
      if (row.finishedAt > oldest) break;
      this.#forget(row);
    }
  }

  #forget(row: EventRow): void {
    this.#dropBody(row);
    this.#finished.delete(row);
    this.#byId.delete(eventKey(row.company, row.id));
    this.#byDedupeKey.delete(eventKey(row.company, row.dedupeKey));
  }

  #dropBody(row: EventRow): number {
    const size = row.raw?.byteLength ?? 0;
    this.#bytes -= size;
    row.raw = null;
    return size;
  }

  #settle(delivery: DeliveryRow): void {
    this.#unfinished.delete(delivery);
    const { event } = delivery;
    if (event.deliveries.every(({ state }) => state === 'done' || state === 'dead')) {
      this.#finish(event);
    }
  }

  #finish(event: EventRow): void {
    event.finishedAt = this.runtime.monotonic();
    this.#finished.add(event);
  }

  #held(lease: Lease, act: (row: DeliveryRow) => void): boolean {
    const row = this.#byId
      .get(eventKey(lease.company, lease.id))
      ?.deliveries.find(({ handler }) => handler === lease.handler);
    const held =
      row?.state === 'running' && row.token === lease.token && row.dueAt > this.runtime.monotonic();
    if (held) act(row);
    return held;
  }

  #busyKeys(now: number): Set<string> {
    const busy = new Set<string>();
    for (const row of this.#unfinished) {
      const leased = row.state === 'running' && row.dueAt > now;
      if (leased && row.event.orderingKey !== null) busy.add(exclusionKey(row));
    }
    return busy;
  }
}

function eventKey(company: string, key: string): string {
  // A company's id holds no line break, so no two pairs make one key.
  return `${company}\n${key}`;
}

function exclusionKey({ handler, event }: DeliveryRow): string {
  return `${event.company}\n${handler}\n${event.orderingKey}`;
}

function digestOf(raw: Buffer): string {
  return createHash('sha256').update(raw).digest('base64');
}

function receipt(outcome: StoreReceipt['outcome'], row: EventRow): StoreReceipt {
  return { outcome, id: row.id, deliveries: describe(row).deliveries };
}

function describe(row: EventRow): Omit<StoredEvent, 'raw'> {
  const { company, id, eventType, receivedAt } = row;
  const deliveries = row.deliveries.map(({ handler, state, attempts, lastError }) => ({
    handler,
    state,
    attempts,
    lastError,
  }));
  return { company, id, eventType, receivedAt, deliveries };
}
