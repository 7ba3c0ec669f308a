import type { PaymentsRuntime } from '../payments.runtime.js';
import type { ActivityCounts, ActivityMinute } from './activity.minutes.js';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventFilter,
  EventPage,
  IncomingEvent,
  InboxCapabilities,
  InboxStats,
  Lease,
  StoredEvent,
  StoreReceipt,
} from './inbox.records.js';

export type * from './inbox.records.js';

/**
 * Where events and their deliveries are kept. Every operation is atomic; none of them holds a transaction open
 * when it resolves. Those that act on a lease answer `false` where it was lost, and never act on a stale one:
 * a lease is lost when it ran out, or when its token is not the delivery's any more.
 *
 * `Tx` is what {@link commit} hands to its work.
 */
export interface InboxStore<Tx = unknown> {
  /** What the store promises beyond the rest. The same for as long as it lives. */
  readonly capabilities: InboxCapabilities;

  /**
   * Makes the store ready, its tables included. Several processes may open one store at the same time.
   * Called once, before anything else.
   */
  open(): Promise<void>;

  /** Lets go of what the store holds. Called once, last; what is called after it rejects. */
  close(): Promise<void>;

  /**
   * Stores events, each with a pending delivery to each of its handlers; an event that is known, within this
   * batch too, is reported and changes nothing. Resolves once they are as safe as the store makes them, with
   * a receipt for each event in their order. Rejects within a bounded time where the store is down.
   *
   * @throws PaymentsError `inbox_full`, having stored none of them.
   */
  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]>;

  /**
   * Leases at most `limit` due deliveries of the named handlers, the longest due first, for `leaseMs`, and
   * counts an attempt of each. Due is a pending delivery whose time has come, and a running one whose lease
   * ran out; that one's attempt is added to the history as `lost`. Passed over are paused handlers, and deliveries whose company, handler and ordering key another
   * holds a lease of.
   */
  claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]>;

  /** Prolongs a lease to `leaseMs` from now. */
  extend(lease: Lease, leaseMs: number): Promise<boolean>;

  /** Marks a delivery done. As {@link fail} and {@link commit}, it adds the attempt to the history. */
  complete(lease: Lease): Promise<boolean>;

  /**
   * Records a failure: due again in `retryInMs`, or dead where that is `null`. Of the error, 1,000
   * characters are kept at the most.
   */
  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean>;

  /** Gives a delivery back, due in `dueInMs` (default: at once), without the attempt being charged. */
  release(lease: Lease, dueInMs?: number): Promise<boolean>;

  /**
   * Runs `work` and marks the delivery done in one transaction. Where `work` throws, or the lease was lost,
   * nothing of it stays.
   *
   * @throws PaymentsError `lease_lost`; `commit_unsupported` where `capabilities.transactional` is false;
   *   and what `work` throws.
   */
  commit<R>(lease: Lease, work: (tx: Tx) => R | Promise<R>): Promise<R>;

  /**
   * Milliseconds until a delivery of the named handlers may be claimed, 0 or less if one may be now; `null`
   * if none waits. Paused handlers are not counted; what its ordering key holds back may be.
   */
  nextDueInMs(handlers: readonly string[]): Promise<number | null>;

  /**
   * Calls `listener` when a delivery may have become due through another process (or this one). A hint that
   * may be missed or come for nothing. Returns how to stop it.
   */
  onWake(listener: () => void): () => void;

  /** The event of that id, with its body, headers and histories, if it is known. */
  find(company: string, id: string): Promise<StoredEvent | undefined>;

  /** Events by receipt, newest or oldest first, `limit` at a time (1 to 1,000). */
  list(query: {
    readonly filter: EventFilter;
    readonly order: 'newest' | 'oldest';
    readonly limit: number;
    /** `next` of the page before; `null` for the first. */
    readonly after: string | null;
  }): Promise<EventPage>;

  /** Counts of what is stored now. It costs about the same, however many events there are. */
  stats(): Promise<InboxStats>;

  /**
   * Adds counts to the minute it is by the store's clock. Several processes do so at the same time, every few
   * seconds each.
   */
  record(counts: ActivityCounts): Promise<void>;

  /**
   * The last `minutes` (1 to 1,440), the current one included, by the store's clock: each once, the oldest
   * first, with zeros where nothing was recorded.
   */
  activity(minutes: number): Promise<ActivityMinute[]>;

  /**
   * Makes deliveries due again: dead and skipped ones, pending ones at once, and done ones where `force` is
   * set; a running one is left alone, and a pruned event too. Attempts start from 0 again for all but pending
   * ones. `dueInMs[i]` is when selection `i` falls due. Returns how many deliveries it changed or added.
   */
  redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number>;

  /** Marks pending and dead deliveries skipped. Returns how many. */
  skip(selections: readonly DeliverySelection[]): Promise<number>;

  /** Stops (or, with `false`, starts again) the claims of a handler, or of all for `*`, in every process. */
  pause(handler: string, paused: boolean): Promise<void>;

  /**
   * Forgets, at most `limit` events at a time (1 to 10,000): the bodies and deliveries of events received more
   * than `bodiesMs` ago whose deliveries are all done or skipped, leaving a tombstone; and tombstones of
   * events that were received more than `tombstonesMs` ago and whose own time (`occurredAt`) is as long ago: an
   * event from the future is remembered longer, so that whatever was forgotten is older than `tombstonesMs`.
   * Returns how many it touched. Recorded minutes that {@link activity} does not reach any more are forgotten
   * too, and not counted.
   */
  prune(request: {
    readonly bodiesMs: number;
    readonly tombstonesMs: number;
    readonly limit: number;
  }): Promise<number>;
}

/** What `memoryInbox()` and its like return: how to make a store, so that each application gets its own. */
export interface InboxDefinition {
  /** For messages, e.g. `memory`. */
  readonly name: string;
  /** A new store, not opened yet. It gets its time from `runtime`, where it has no clock of its own. */
  create(runtime: PaymentsRuntime): InboxStore;
}
