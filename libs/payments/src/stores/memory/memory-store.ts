import { inspect } from 'node:util';
import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  EventPage,
  HandlerCatalog,
  HeartbeatResult,
  InboxActivity,
  InboxStats,
  InboxStore,
  IncomingEvent,
  StoredEvent,
  StoreReceipt,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { countActivity } from '../../inbox/store/activity.js';
import { capped } from '../../inbox/store/stored-event.js';
import { addCopy, EventIndex } from './event-index.js';
import type { MemoryLimits } from './event-index.js';
import { MemoryDeliveries } from './memory-deliveries.js';
import { MemoryExpectations } from './memory-expectations.js';
import { activitySlices, countDeliveries, describeEvent, pageOf } from './memory-queries.js';
import { MemoryEvent } from './memory-rows.js';
import { countFailures } from './memory-search.js';
import { MemoryWorkers } from './memory-workers.js';

/** The store of `memoryInbox()`. Due times and heartbeats use the monotonic clock, which the wall clock cannot move. */
export class MemoryStore extends MemoryDeliveries implements InboxStore<never> {
  readonly capabilities = Object.freeze({
    durable: false,
    shared: false,
    transactional: false,
    ownClock: false,
  });
  readonly expectations: MemoryExpectations;
  readonly #workers: MemoryWorkers;
  #seq = 0;

  constructor(limits: MemoryLimits, runtime: PaymentsRuntime) {
    super(new EventIndex(limits), runtime);
    this.#workers = new MemoryWorkers(runtime);
    const { events } = this;
    this.expectations = new MemoryExpectations(
      {
        paused: this.paused,
        receiveNow: (event) => this.#receiveNow([event])[0]!,
        find: (company, id) => events.find(company, id),
        findOnce: (...key) => events.findOnce(...key),
        wake: () => this.wake(),
      },
      limits.maxEvents,
      runtime,
    );
  }

  // The next two methods keep bodies and headers of events out of logs.
  [inspect.custom](): string {
    return 'MemoryStore {}';
  }

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
    const rows = [...this.events.all()].flatMap((row) => row.deliveries);
    return this.skipRows(rows.filter(({ handler }) => handler.name === name));
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    return this.#receiveNow(events);
  }

  #receiveNow(events: readonly IncomingEvent[]): StoreReceipt[] {
    const [now, wallMs] = [this.runtime.monotonic(), this.runtime.now()];
    this.events.forgetExpired(now);
    const added: MemoryEvent[] = [];
    const received = events.map((event) => {
      const row = new MemoryEvent(event, wallMs, now, (this.#seq += 1));
      const original = this.events.original(row);
      const isNew = original === undefined && event.catalogVersion === this.#workers.version;
      if (isNew) this.events.add(row);
      if (isNew) added.push(row);
      return { event, row, original, isNew };
    });
    this.events.makeRoom(added);
    const receipts = received.map(({ event, row, original, isNew }): StoreReceipt => {
      const receipt = isNew ? this.#addDeliveries(event, row) : copyReceipt(row, original);
      const stored = isNew ? row : receipt.outcome === 'duplicate' && original;
      if (!event.fulfils || !stored) return receipt;
      return { ...receipt, fulfilled: this.expectations.fulfil(event, stored) };
    });
    if (receipts.some(({ pending }) => pending)) this.wake();
    return receipts;
  }

  /** A stale event counts as the event of its transaction from now on, unless another event does. */
  protected override refresh(row: MemoryEvent, fulfils: readonly string[]): boolean {
    if (!this.events.refresh(row)) return false;
    const { company, eventType, orderingKey } = row.fixed;
    const { reference } = row;
    if (fulfils.includes(eventType)) {
      this.expectations.fulfil({ company, orderingKey, reference }, row);
    }
    return true;
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
    const { oldestUnfinished: oldest, undelivered } = this.events;
    return {
      deliveries: countDeliveries(this.handlers.values()),
      unhandled: capped(undelivered.unhandled.size),
      stale: capped(undelivered.stale.size),
      oldestPendingMs: oldest ? this.runtime.monotonic() - oldest.receivedAt : null,
      paused: [...this.paused].toSorted(),
    };
  }

  async failures(): ReturnType<InboxStore['failures']> {
    return countFailures(this.events);
  }

  async activity(minutes: number, bodiesMs: number): Promise<InboxActivity> {
    const now = this.runtime.now();
    const deletedMs = Math.max(this.events.deletedMs, now - bodiesMs);
    return countActivity(minutes, now, deletedMs, activitySlices(this.events));
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    const [now, wallMs] = [this.runtime.monotonic(), this.runtime.now()];
    const pruned = this.events.prune(request, now, wallMs);
    return pruned + this.expectations.prune(request.tombstonesMs, request.limit - pruned);
  }

  #addDeliveries({ id, handlers, assign }: IncomingEvent, row: MemoryEvent): StoreReceipt {
    const claimed = handlers
      .map((name) =>
        this.deliver(row, name, 0, assign?.handlers.includes(name) ? assign.worker : undefined),
      )
      .filter((delivery) => delivery !== null);
    this.events.update(row, row.receivedAt);
    const pending = claimed.length < handlers.length;
    return { outcome: 'stored', id, claimed, pending, fulfilled: [] };
  }

  /** A time of the monotonic clock, on the wall clock. */
  readonly #toDate = (monotonicMs: number): Date =>
    new Date(this.runtime.now() + monotonicMs - this.runtime.monotonic());
}

function copyReceipt(row: MemoryEvent, original: MemoryEvent | undefined): StoreReceipt {
  const { id } = (original ?? row).fixed;
  const outcome = original ? addCopy(original, row) : 'outdated';
  return { outcome, id, claimed: [], pending: false, fulfilled: [] };
}

/** The error of `context.commit()` with an inbox that has no transactions. */
export function commitUnsupported(): PaymentsError {
  return new PaymentsError(
    'commit_unsupported',
    'The memory inbox has no transaction to commit in. Keep the inbox in the database of your effects, ' +
      'or let the return of the handler settle the delivery.',
  );
}
