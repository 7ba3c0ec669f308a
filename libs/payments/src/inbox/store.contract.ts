import type { PaymentsRuntime } from '../payments.runtime.js';

/** A verified event on its way into a store. */
export interface IncomingEvent {
  /** Company the delivery was signed for. 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. */
  readonly company: string;
  /** The event's id, 1 to 255 characters, none a control character. */
  readonly id: string;
  /** What makes two events one: unique together with the company. The event's id, unless options say else. */
  readonly dedupeKey: string;
  /** 1 to 255 characters, none a control character. */
  readonly eventType: string;
  /** The event's own time (its `timestamp`). */
  readonly occurredAt: Date;
  /**
   * Deliveries of one company, handler and ordering key never run at the same time. `null`: no such bound.
   * It is the event's `data.transactionId`, of any length and content.
   */
  readonly orderingKey: string | null;
  /** The body, byte for byte as it was signed. */
  readonly raw: Buffer;
  /** Names of the handlers to deliver to, each once; none: the event is kept as unhandled. */
  readonly handlers: readonly string[];
}

/**
 * Where one event stands with one handler.
 *
 * - `pending`: waits for its first attempt or, after a failure, for the next.
 * - `running`: leased to a worker.
 * - `done`: the handler succeeded.
 * - `dead`: out of attempts, or given up as unrecoverable: a dead letter, kept until it is redriven or skipped.
 * - `skipped`: an operator decided that it is not to run.
 */
export type DeliveryState = 'pending' | 'running' | 'done' | 'dead' | 'skipped';

/** One event's delivery to one handler, as stored. */
export interface StoredDelivery {
  readonly handler: string;
  readonly state: DeliveryState;
  /** Attempts begun so far. */
  readonly attempts: number;
  /** One line about the last failure, `null` where there was none. */
  readonly lastError: string | null;
  /** When a pending one is due, or the lease of a running one ends; `null` in the other states. */
  readonly dueAt: Date | null;
  /** When it became done, dead or skipped; `null` before. */
  readonly finishedAt: Date | null;
}

/** An event as stored. */
export interface StoredEvent {
  readonly company: string;
  readonly id: string;
  readonly eventType: string;
  readonly occurredAt: Date;
  readonly orderingKey: string | null;
  /** When the first copy was stored, by the store's clock. */
  readonly receivedAt: Date;
  /** The body as received, or `null` where it was pruned and only the tombstone is left. */
  readonly raw: Buffer | null;
  /** One per handler, by handler name; empty for an event nobody handled, and for a tombstone. */
  readonly deliveries: readonly StoredDelivery[];
}

/** What became of one event that was received. */
export interface StoreReceipt {
  /**
   * - `stored`: new.
   * - `duplicate`: known; nothing was added.
   * - `conflict`: known under the same id with another body; the original is kept.
   */
  readonly outcome: 'stored' | 'duplicate' | 'conflict';
  /** Id of the event that is stored: of the original, for a duplicate. */
  readonly id: string;
}

/** The right to run one delivery for a time. */
export interface Lease {
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
  readonly handler: string;
  /** Fencing token: grows with every claim of the delivery, so that an earlier holder is known as stale. */
  readonly token: number;
}

/** A delivery that was claimed. */
export interface ClaimedDelivery extends Lease {
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly raw: Buffer;
  /**
   * Whether this handler has already done an event of the same company and ordering key whose own time
   * (`occurredAt`) is later than this one's.
   */
  readonly newerHandled: boolean;
  /**
   * Whether it was taken over from a lease that ran out: the attempt before this one ended without a result,
   * because its process died or was cut off.
   */
  readonly takenOver: boolean;
}

/** What a store can and cannot promise. */
export interface InboxCapabilities {
  /**
   * Whether a received event outlives the process. Where it does not, the sender is answered 2xx only once
   * the handlers have succeeded.
   */
  readonly durable: boolean;
  /** Whether several processes may share it. */
  readonly shared: boolean;
  /** Whether {@link InboxStore.commit} works: effects and settlement in one transaction. */
  readonly transactional: boolean;
  /** Whether its leases follow its own clock, whatever the clocks of the workers say. */
  readonly ownClock: boolean;
}

/** Which events: every field given must hold. Times are of receipt. */
export interface EventFilter {
  readonly company?: string;
  /** Exactly these ids, at most 1,000. */
  readonly ids?: readonly string[];
  readonly eventType?: string;
  /** Received at this time or later. */
  readonly from?: Date;
  /** Received before this time. */
  readonly to?: Date;
  /** With a delivery to this handler. */
  readonly handler?: string;
  /** With a delivery in this state (to that handler, where one is given), or with none (`unhandled`). */
  readonly state?: DeliveryState | 'unhandled';
  /** Where the id, ordering key or event type contains this text. */
  readonly search?: string;
}

/** A page of a list. */
export interface EventPage {
  /** Without their bodies: `raw` is `null`. */
  readonly events: readonly StoredEvent[];
  /** What to ask the next page with; `null` where this was the last. */
  readonly next: string | null;
}

/** Counts for a dashboard or a scraper. */
export interface InboxStats {
  /** Deliveries by handler and state; states without any are left out. */
  readonly deliveries: readonly {
    readonly handler: string;
    readonly state: DeliveryState;
    readonly count: number;
  }[];
  /** Events kept that nobody handled. */
  readonly unhandled: number;
  /** Milliseconds since the oldest delivery still pending or running was received; `null` without any. */
  readonly oldestPendingMs: number | null;
  /** What is paused: handler names, and `*` for all. */
  readonly paused: readonly string[];
}

/** One event whose deliveries are to run again, or not at all. */
export interface DeliverySelection {
  readonly company: string;
  readonly id: string;
  /** Handlers concerned. {@link InboxStore.redrive} adds a delivery where the event has none to one of them. */
  readonly handlers: readonly string[];
}

/**
 * Where events and their deliveries are kept. Every operation is atomic; none of them holds a transaction open
 * when it resolves. Those that act on a lease answer `false` where it was lost, and never act on a stale one:
 * a lease is lost when it ran out, or when its token is not the delivery's any more.
 *
 * `Tx` is what {@link commit} hands to its work.
 */
export interface InboxStore<Tx = unknown> {
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
   * ran out. Passed over are paused handlers, and deliveries whose company, handler and ordering key another
   * holds a lease of.
   */
  claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]>;

  /** Prolongs a lease to `leaseMs` from now. */
  extend(lease: Lease, leaseMs: number): Promise<boolean>;

  /** Marks a delivery done. */
  complete(lease: Lease): Promise<boolean>;

  /** Records a failure: due again in `retryInMs`, or dead where that is `null`. */
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

  /** The event of that id, with its body, if it is known. */
  find(company: string, id: string): Promise<StoredEvent | undefined>;

  /** Events by receipt, newest or oldest first, `limit` at a time (1 to 1,000). */
  list(query: {
    readonly filter: EventFilter;
    readonly order: 'newest' | 'oldest';
    readonly limit: number;
    /** `next` of the page before; `null` for the first. */
    readonly after: string | null;
  }): Promise<EventPage>;

  stats(): Promise<InboxStats>;

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
   * events received more than `tombstonesMs` ago. Returns how many it touched.
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
  create(runtime: PaymentsRuntime): InboxStore;
}
