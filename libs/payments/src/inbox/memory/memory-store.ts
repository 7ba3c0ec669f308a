import { PaymentsError } from '../../payments.errors.js';
import type { PaymentsRuntime } from '../../payments.runtime.js';
import type {
  ActivityMinute,
  ClaimedDelivery,
  ClaimRequest,
  DeliverySelection,
  EventPage,
  HandlerCatalog,
  Heartbeat,
  InboxStats,
  InboxStore,
  IncomingEvent,
  Lease,
  Settlement,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../inbox-store.js';
import { COUNT_CAP } from '../inbox-records.js';
import { MemoryActivity } from './memory-activity.js';
import { MemoryDeliveries } from './memory-deliveries.js';
import { MemoryEvents } from './memory-events.js';
import type { MemoryLimits } from './memory-events.js';
import { pageOf, prunable } from './memory-queries.js';
import { MemoryQueue } from './memory-queue.js';
import { MemoryReceiver } from './memory-receiver.js';
import { describeEvent } from './memory-rows.js';
import { MemoryWorkers } from './memory-workers.js';

/** The store of `memoryInbox()`. Due times and heartbeats follow the monotonic clock, so no jump of the wall clock moves them. */
export class MemoryStore implements InboxStore<never> {
  readonly capabilities = Object.freeze({
    durable: false,
    shared: false,
    transactional: false,
    ownClock: false,
  });
  readonly #queue = new MemoryQueue();
  readonly #events: MemoryEvents;
  readonly #deliveries: MemoryDeliveries;
  readonly #workers: MemoryWorkers;
  readonly #receiver: MemoryReceiver;
  readonly #activity = new MemoryActivity();
  readonly #paused = new Set<string>();
  readonly #listeners = new Set<() => void>();

  constructor(
    limits: MemoryLimits,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#events = new MemoryEvents(limits, this.#queue);
    this.#deliveries = new MemoryDeliveries(this.#events, this.#queue, runtime);
    this.#workers = new MemoryWorkers(this.#deliveries, this.#queue, runtime);
    this.#receiver = new MemoryReceiver(
      this.#events,
      this.#deliveries,
      this.#queue,
      runtime,
      (event) => event.catalogVersion === this.#workers.version,
      (handler) => this.#isPaused(handler),
    );
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async register(worker: WorkerRegistration): Promise<HandlerCatalog> {
    this.#workers.register(worker);
    return this.#workers.catalog();
  }

  async heartbeat(worker: string): Promise<Heartbeat> {
    const handlers = this.#workers.heartbeat(worker);
    const suspects = this.#queue.hasSuspects(this.#notPaused(handlers ?? []));
    return { alive: handlers !== null, suspects };
  }

  async retire(worker: string, graceMs: number): Promise<void> {
    this.#workers.retire(worker, graceMs);
  }

  async catalog(): Promise<HandlerCatalog> {
    return this.#workers.catalog();
  }

  async forgetHandler(handler: string): Promise<number | null> {
    if (!this.#workers.forget(handler)) return null;
    const rows = [...this.#events.all()].flatMap(({ deliveries }) => deliveries);
    return this.#deliveries.skip(rows.filter((row) => row.handler === handler));
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = this.#receiver.receive(events);
    if (receipts.some(({ pending }) => pending)) this.#wake();
    return receipts;
  }

  async claim({ worker, wanted }: ClaimRequest): Promise<ClaimedDelivery[]> {
    return wanted.flatMap(({ handler, limit }) =>
      this.#isPaused(handler) ? [] : this.#deliveries.claim(worker, handler, limit),
    );
  }

  async claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null> {
    const { worker, handlers, alone } = request;
    return this.#deliveries.claimSuspect(worker, this.#notPaused(handlers), alone);
  }

  async complete(lease: Lease): Promise<Settlement> {
    return this.#deliveries.complete(lease);
  }

  async fail(
    lease: Lease,
    failure: { error: string; retryInMs: number | null },
  ): Promise<Settlement> {
    return this.#deliveries.fail(lease, failure);
  }

  async release(lease: Lease, dueInMs = 0): Promise<Settlement> {
    return this.#deliveries.release(lease, dueInMs);
  }

  async commit(): Promise<never> {
    throw commitUnsupported();
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const nextDueAt = this.#queue.nextDueAt(this.#notPaused(handlers));
    return nextDueAt === Infinity ? null : nextDueAt - this.#now();
  }

  onWake(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.#events.find(company, id);
    return row && describeEvent(row, this.#toDate);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return pageOf(this.#events, query, this.#toDate);
  }

  async stats(): Promise<InboxStats> {
    const { oldestUnfinished, undelivered } = this.#events;
    const capped = (count: number) => ({
      count: Math.min(count, COUNT_CAP),
      more: count > COUNT_CAP,
    });
    return {
      deliveries: this.#queue.counts(),
      unhandled: capped(undelivered.unhandled.size),
      stale: capped(undelivered.stale.size),
      oldestPendingMs: oldestUnfinished ? this.#now() - oldestUnfinished.since : null,
      paused: [...this.#paused].toSorted(),
    };
  }

  async summarize(): Promise<void> {
    this.#activity.summarize(this.#events.all(), this.runtime.now());
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return this.#activity.last(minutes);
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    let changed = 0;
    selections.forEach(({ company, id, handlers }, n) => {
      const event = this.#events.find(company, id);
      if (event === undefined || event.raw === null) return;
      for (const handler of new Set(handlers)) {
        const row = event.deliveries.find((delivery) => delivery.handler === handler);
        if (row?.state === 'running' || (row?.state === 'done' && !options.force)) continue;
        if (row && row.state !== 'pending') row.attempts = 0;
        if (row) this.#deliveries.reopen(row, options.dueInMs[n] ?? 0);
        else this.#deliveries.add(event, handler, options.dueInMs[n] ?? 0);
        changed += 1;
      }
    });
    if (changed > 0) this.#wake();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const rows = selections.flatMap(({ company, id, handlers }) => {
      const deliveries = this.#events.find(company, id)?.deliveries ?? [];
      return deliveries.filter(({ handler }) => handlers.includes(handler));
    });
    return this.#deliveries.skip(rows);
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    if (paused) this.#paused.add(handler);
    else if (this.#paused.delete(handler)) this.#wake();
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    this.#activity.prune(this.runtime.now());
    const now = { wall: this.runtime.now(), monotonic: this.#now() };
    let changed = 0;
    for (const { row, forget } of prunable(this.#events, request, now)) {
      if (changed === request.limit) break;
      if (forget) this.#events.forget(row);
      else this.#events.entomb(row);
      changed += 1;
    }
    return changed;
  }

  #isPaused(handler: string): boolean {
    return this.#paused.has('*') || this.#paused.has(handler);
  }

  #notPaused(handlers: readonly string[]): string[] {
    return handlers.filter((handler) => !this.#isPaused(handler));
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #now(): number {
    return this.runtime.monotonic();
  }

  /** A time of the monotonic clock, on the wall clock. */
  readonly #toDate = (monotonicMs: number): Date =>
    new Date(this.runtime.now() + monotonicMs - this.#now());
}

/** The error of `context.commit()` with an inbox that has no transactions. */
export function commitUnsupported(): PaymentsError {
  return new PaymentsError(
    'commit_unsupported',
    'The memory inbox has no transaction to commit in. Keep the inbox in the database of your effects, ' +
      'or let the return of the handler settle the delivery.',
  );
}
