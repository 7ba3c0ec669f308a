import type { PaymentsRuntime } from '../payments.runtime.js';
import type { ActivityCounts, ActivityMinute } from './activity.minutes.js';
import { ActivityRecorder } from './activity.recorder.js';
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
} from './store.contract.js';

interface CountedDelivery extends ClaimedDelivery {
  /**
   * When its event was received, on this process's monotonic clock: its age, which the store told, goes on here.
   * So no two machines' clocks are ever compared.
   */
  readonly since: number;
}

/**
 * A store whose activity is counted: what goes through it, in this process. All of the inbox works on it, so no
 * station need count.
 */
export class CountedStore<Tx = unknown> implements InboxStore<Tx> {
  readonly #recorder: ActivityRecorder;

  constructor(
    private readonly store: InboxStore<Tx>,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#recorder = new ActivityRecorder(store, runtime);
  }

  get capabilities(): InboxStore['capabilities'] {
    return this.store.capabilities;
  }

  open(): Promise<void> {
    return this.store.open();
  }

  async close(): Promise<void> {
    await this.#recorder.close();
    await this.store.close();
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.store.receive(events);
    this.#recorder.received(receipts.filter(({ outcome }) => outcome === 'stored').length);
    return receipts;
  }

  async claim(request: Parameters<InboxStore['claim']>[0]): Promise<CountedDelivery[]> {
    const claimed = await this.store.claim(request);
    const now = this.runtime.monotonic();
    return claimed.map((delivery) => ({ ...delivery, since: now - delivery.ageMs }));
  }

  extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.store.extend(lease, leaseMs);
  }

  async complete(lease: Lease): Promise<boolean> {
    const done = await this.store.complete(lease);
    if (done) this.#recorder.handled(this.#tookMs(lease));
    return done;
  }

  async fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    const recorded = await this.store.fail(lease, failure);
    if (recorded) this.#recorder.failed(failure.retryInMs === null);
    return recorded;
  }

  release(lease: Lease, dueInMs?: number): Promise<boolean> {
    return this.store.release(lease, dueInMs);
  }

  async commit<R>(lease: Lease, work: (tx: Tx) => R | Promise<R>): Promise<R> {
    const result = await this.store.commit(lease, work);
    this.#recorder.handled(this.#tookMs(lease));
    return result;
  }

  nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.store.nextDueInMs(handlers);
  }

  onWake(listener: () => void): () => void {
    return this.store.onWake(listener);
  }

  find(company: string, id: string): Promise<StoredEvent | undefined> {
    return this.store.find(company, id);
  }

  list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return this.store.list(query);
  }

  stats(): Promise<InboxStats> {
    return this.store.stats();
  }

  record(counts: ActivityCounts): Promise<void> {
    return this.store.record(counts);
  }

  /** With what this process has counted until now. */
  async activity(minutes: number): Promise<ActivityMinute[]> {
    await this.#recorder.flush();
    return this.store.activity(minutes);
  }

  redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    return this.store.redrive(selections, options);
  }

  skip(selections: readonly DeliverySelection[]): Promise<number> {
    return this.store.skip(selections);
  }

  pause(handler: string, paused: boolean): Promise<void> {
    return this.store.pause(handler, paused);
  }

  prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    return this.store.prune(request);
  }

  #tookMs({ since }: Lease & Partial<CountedDelivery>): number | null {
    return since === undefined ? null : this.runtime.monotonic() - since;
  }
}
