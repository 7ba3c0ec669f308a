import { inspect } from 'node:util';
import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  ActivityMinute,
  CappedCount,
  EventPage,
  HandlerCatalog,
  HeartbeatResult,
  InboxStats,
  InboxStore,
  IncomingEvent,
  StoredEvent,
  StoreReceipt,
  WorkerRegistration,
} from '../store/inbox-store.js';
import { COUNT_CAP } from '../store/stored-event.js';
import { conflicts, EventIndex } from './event-index.js';
import type { MemoryLimits } from './event-index.js';
import { describeEvent, pageOf } from './event-list.js';
import { MemoryActivity } from './memory-activity.js';
import { MemoryDeliveries } from './memory-deliveries.js';
import { EventRow } from './memory-rows.js';
import { MemoryWorkers } from './memory-workers.js';

/** How many repeats of an event are kept. */
const REPEATS = 20;

/** The store of `memoryInbox()`. Due times and heartbeats follow the monotonic clock, so no jump of the wall clock moves them. */
export class MemoryStore extends MemoryDeliveries implements InboxStore<never> {
  readonly capabilities = Object.freeze({
    durable: false,
    shared: false,
    transactional: false,
    ownClock: false,
  });
  readonly #workers: MemoryWorkers;
  readonly #activity = new MemoryActivity();
  #seq = 0;

  constructor(limits: MemoryLimits, runtime: PaymentsRuntime) {
    super(new EventIndex(limits), runtime);
    this.#workers = new MemoryWorkers(runtime);
  }

  /** Keeps bodies and headers of events out of whatever prints the store, such as a log. */
  [inspect.custom](): string {
    return 'MemoryStore {}';
  }

  /** As for `inspect`. */
  toJSON(): object {
    return {};
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async register(worker: WorkerRegistration): Promise<HandlerCatalog> {
    this.#workers.register(worker);
    return this.#workers.catalog();
  }

  async heartbeat(id: string): Promise<HeartbeatResult> {
    const retired = this.#workers.heartbeat(id);
    for (const row of this.running.values()) {
      if (!this.#workers.find(row.worker)) this.free(row, !retired.includes(row.worker));
    }
    const worker = this.#workers.find(id);
    const handlers = this.unpaused(worker?.handlers.map(({ name }) => name) ?? []);
    const suspects = handlers.some((handler) => handler.suspects.size > 0);
    return { alive: worker !== undefined, suspects };
  }

  async retire(id: string, graceMs: number): Promise<void> {
    const isRunning = [...this.running.values()].some(({ worker }) => worker === id);
    this.#workers.retire(id, isRunning ? graceMs : null);
  }

  async catalog(): Promise<HandlerCatalog> {
    return this.#workers.catalog();
  }

  async forgetHandler(name: string): Promise<number | null> {
    if (!this.#workers.forget(name)) return null;
    const rows = [...this.events.all()].flatMap(({ deliveries }) => deliveries);
    return this.skipRows(rows.filter(({ handler }) => handler.name === name));
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const [now, wall] = [this.runtime.monotonic(), this.runtime.now()];
    this.events.forgetExpired(now);
    const added: EventRow[] = [];
    const received = events.map((event) => {
      const row = new EventRow(event, wall, now, (this.#seq += 1));
      const original = this.events.original(row);
      const isNew = original === undefined && event.catalogVersion === this.#workers.version;
      if (isNew) this.events.add(row);
      if (isNew) added.push(row);
      return { event, row, original, isNew };
    });
    this.events.makeRoom(added);
    const receipts = received.map(({ event, row, original, isNew }): StoreReceipt => {
      if (original !== undefined) return receiveCopy(row, original);
      if (isNew) return this.#receiveNew(event, row);
      return { outcome: 'outdated', id: event.id, claimed: [], pending: false };
    });
    if (receipts.some(({ pending }) => pending)) this.wake();
    return receipts;
  }

  async commit(): Promise<never> {
    throw commitUnsupported();
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.events.find(company, id);
    return row && describeEvent(row, this.#toDate, true);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return pageOf(this.events, query, this.#toDate);
  }

  async stats(): Promise<InboxStats> {
    const { oldestUnfinished, undelivered } = this.events;
    const deliveries = [...this.handlers.values()].flatMap(({ name: handler, counts }) =>
      (['pending', 'running', 'dead'] as const)
        .filter((state) => counts[state] > 0)
        .map((state) => ({ handler, state, ...capped(counts[state]) })),
    );
    return {
      deliveries,
      unhandled: capped(undelivered.unhandled.size),
      stale: capped(undelivered.stale.size),
      oldestPendingMs: oldestUnfinished ? this.runtime.monotonic() - oldestUnfinished.since : null,
      paused: [...this.paused].toSorted(),
    };
  }

  async summarize(): Promise<void> {
    this.#activity.summarize(this.events.all(), this.runtime.now());
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return this.#activity.last(minutes);
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    const { bodiesMs, tombstonesMs, limit } = request;
    const [wall, now] = [this.runtime.now(), this.runtime.monotonic()];
    let changed = 0;
    this.#activity.prune(wall);
    for (const row of this.events.all()) {
      const age = now - row.since;
      if (changed === limit || age <= Math.min(bodiesMs, tombstonesMs)) break;
      const forget = Math.min(age, wall - row.occurredMs) > tombstonesMs;
      const settled = row.deliveries.every(({ state }) => state === 'done' || state === 'skipped');
      if (!settled || (row.raw === null && !forget)) continue;
      if (forget) this.events.forget(row);
      else this.events.entomb(row);
      changed += 1;
    }
    return changed;
  }

  #receiveNew({ id, handlers, assign }: IncomingEvent, row: EventRow): StoreReceipt {
    const claimed = handlers
      .map((name) =>
        this.deliver(row, name, 0, assign?.handlers.includes(name) ? assign.worker : undefined),
      )
      .filter((delivery) => delivery !== null);
    this.events.update(row, row.since);
    return { outcome: 'stored', id, claimed, pending: claimed.length < handlers.length };
  }

  /** A time of the monotonic clock, on the wall clock. */
  readonly #toDate = (monotonicMs: number): Date =>
    new Date(this.runtime.now() + monotonicMs - this.runtime.monotonic());
}

function receiveCopy(row: EventRow, original: EventRow): StoreReceipt {
  const { id } = row.fixed;
  const receipt = { id: original.fixed.id, claimed: [], pending: false };
  if (id === receipt.id) {
    return { ...receipt, outcome: conflicts(original, row) ? 'conflict' : 'duplicate' };
  }
  if (!original.repeats.some((repeat) => repeat.id === id)) {
    original.repeats = [...original.repeats, { id, receivedAt: new Date(row.receivedMs) }].slice(
      -REPEATS,
    );
  }
  return { ...receipt, outcome: 'duplicate' };
}

function capped(count: number): CappedCount {
  return { count: Math.min(count, COUNT_CAP), more: count > COUNT_CAP };
}

/** The error of `context.commit()` with an inbox that has no transactions. */
export function commitUnsupported(): PaymentsError {
  return new PaymentsError(
    'commit_unsupported',
    'The memory inbox has no transaction to commit in. Keep the inbox in the database of your effects, ' +
      'or let the return of the handler settle the delivery.',
  );
}
