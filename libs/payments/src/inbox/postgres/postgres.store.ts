import type { PaymentsRuntime } from '../../payments.runtime.js';
import type { ActivityCounts, ActivityMinute } from '../activity.minutes.js';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventPage,
  IncomingEvent,
  InboxStats,
  InboxStore,
  Lease,
  StoredEvent,
  StoreReceipt,
} from '../inbox-store.js';
import { PostgresInboxError } from './database.failure.js';
import type { ResolvedPostgresOptions } from './postgres.options.js';
import { openParts } from './store.parts.js';
import type { StoreParts } from './store.parts.js';
import type { PostgresTransaction } from './transaction.runner.js';

type Request<Name extends 'claim' | 'list' | 'prune'> = Parameters<InboxStore[Name]>[0];

/** The store behind `postgresInbox()`: says who does what, and tells the other instances. */
export class PostgresStore implements InboxStore<PostgresTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: true,
  });
  #parts: StoreParts | null = null;

  constructor(
    private readonly options: ResolvedPostgresOptions,
    private readonly runtime: PaymentsRuntime,
  ) {}

  async open(): Promise<void> {
    this.#parts = await openParts(this.options, this.runtime);
  }

  async close(): Promise<void> {
    const parts = this.#parts;
    this.#parts = null;
    await parts?.close();
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const { receipts, notifier } = this.#open();
    const answer = await receipts.receive(events);
    const due = answer.some(
      ({ outcome }, index) => outcome === 'stored' && events[index]!.handlers.length > 0,
    );
    if (due) notifier.notify();
    return answer;
  }

  async claim(request: Request<'claim'>): Promise<ClaimedDelivery[]> {
    return this.#open().claims.claim(request);
  }

  async extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#open().settlement.extend(lease, leaseMs);
  }

  async complete(lease: Lease): Promise<boolean> {
    return this.#open().settlement.complete(lease);
  }

  async fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    return this.#open().settlement.fail(lease, failure);
  }

  /** Told to the others: an instance that gives back is one that closes. */
  async release(lease: Lease, dueInMs = 0): Promise<boolean> {
    const { settlement, notifier } = this.#open();
    const released = await settlement.release(lease, dueInMs);
    if (released) notifier.notify();
    return released;
  }

  async commit<R>(lease: Lease, work: (tx: PostgresTransaction) => R | Promise<R>): Promise<R> {
    const { transactions } = this.#open();
    const { runTransaction } = this.options;
    if (runTransaction === undefined) return transactions.commit(lease, work);
    // With a runner, the handler names the type of the runner's transaction.
    return transactions.commitWith(lease, runTransaction, work as (tx: unknown) => R | Promise<R>);
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#open().claims.nextDueInMs(handlers);
  }

  onWake(listener: () => void): () => void {
    return this.#open().listener.add(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    return this.#open().reader.find(company, id);
  }

  async list(query: Request<'list'>): Promise<EventPage> {
    return this.#open().reader.list(query);
  }

  async stats(): Promise<InboxStats> {
    return this.#open().stats.stats();
  }

  async record(counts: ActivityCounts): Promise<void> {
    await this.#open().minutes.record(counts);
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return this.#open().minutes.activity(minutes);
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    const { operator, notifier } = this.#open();
    const changed = await operator.redrive(selections, options);
    if (changed > 0) notifier.notify();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    return this.#open().operator.skip(selections);
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    const { operator, notifier } = this.#open();
    await operator.pause(handler, paused);
    if (!paused) notifier.notify();
  }

  async prune(request: Request<'prune'>): Promise<number> {
    const { pruner, minutes } = this.#open();
    const touched = await pruner.prune(request);
    await minutes.prune();
    return touched;
  }

  #open(): StoreParts {
    if (this.#parts === null) {
      throw new PostgresInboxError('The PostgreSQL inbox is closed, or not open yet.', null);
    }
    return this.#parts;
  }
}
