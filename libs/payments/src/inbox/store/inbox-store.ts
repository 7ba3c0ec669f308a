import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ExpectationStore } from './expectation-store.js';
import type { RecordStore } from './shared-records.js';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventFilter,
  EventPage,
  FailedDelivery,
  InboxActivity,
  InboxStats,
  IncomingEvent,
  Lease,
  PauseFacts,
  StoredEvent,
  StoreReceipt,
} from './stored-event.js';

export type * from './expectation-store.js';
export type * from './shared-records.js';
export type * from './stored-event.js';

export const INBOX_STORE = Symbol('PAYMENTS_INBOX_STORE');

/** A failed attempt of a delivery. */
export interface FailedAttempt {
  /** One line about the failure. */
  readonly error: string;
  /** See {@link StoredDelivery.frames}. Default: none. */
  readonly frames?: string;
  /** Milliseconds until the next attempt; `null` if the delivery is dead. */
  readonly retryInMs: number | null;
}

export interface SettleResult {
  /** Whether the lease was valid, so that the delivery is settled. If the lease was not valid, nothing was changed. */
  readonly settled: boolean;
  /** Whether another delivery, which waited for the same ordering key, became claimable. */
  readonly nextDue: boolean;
}

export interface CommitResult<R> extends Pick<SettleResult, 'nextDue'> {
  /** The return value of the function `work`. */
  readonly result: R;
}

/** A handler as a process declares it. */
export interface HandlerDeclaration {
  /** Name of the handler: 1 to 200 characters without control characters. */
  readonly name: string;
  /** Patterns of event types, as in `@OnPaymentEvent`. The store does not interpret them. */
  readonly patterns: readonly string[];
}

export interface WorkerRegistration {
  /** Id of the worker: a UUID. Each registration has a new id. */
  readonly id: string;
  /** The worker is dead if it sends no heartbeat for this many milliseconds. 1,000 to 3,600,000. */
  readonly leaseMs: number;
  readonly handlers: readonly HandlerDeclaration[];
}

/** A handler that a process has registered in the store. */
export interface KnownHandler extends HandlerDeclaration {
  readonly firstSeenAt: Date;
  /** The last time at which a worker with this handler was live, to the accuracy of a heartbeat. */
  readonly lastSeenAt: Date;
}

/** The handlers that are registered in the store, sorted by name. */
export interface HandlerCatalog {
  /** The version of the catalog, from 0. The version increases with each change of names or patterns. */
  readonly version: number;
  readonly handlers: readonly KnownHandler[];
}

export interface HeartbeatResult {
  /**
   * Whether the worker is live. A worker that is not live was declared dead or never registered, and its deliveries
   * were freed.
   */
  readonly alive: boolean;
  /** Whether one of the worker's handlers has a pending suspect and is not paused. */
  readonly suspects: boolean;
}

export interface ClaimRequest {
  /** Id of a registered worker. */
  readonly workerId: string;
  /** The handlers, and the maximum number of deliveries to claim for each handler: 1 or more. */
  readonly wanted: readonly { readonly handler: string; readonly limit: number }[];
}

/** Selects the suspect to claim. A suspect is a delivery whose process died during an attempt. */
export interface SuspectRequest {
  /** Id of a registered worker. */
  readonly workerId: string;
  readonly handlers: readonly string[];
}

/** The optional guarantees of a store. */
export interface InboxCapabilities {
  /**
   * Whether a received event survives the exit of the process. If the store is not durable, the sender gets a 2xx
   * response only after the handlers have succeeded.
   */
  readonly durable: boolean;
  /**
   * Whether several processes may share the store. A store that is not shared has only one worker, which lives as long
   * as the store. A store that is not shared does not have to handle the death of a worker: it may free no deliveries
   * and have no suspects.
   */
  readonly shared: boolean;
  /** Whether `context.commit` works: it stores the handler's effects and the settled delivery in one transaction. */
  readonly transactional: boolean;
  /** Whether heartbeats and due times use a clock of the store instead of the process clocks of the workers. */
  readonly ownClock: boolean;
}

/**
 * Stores events and their deliveries. Every operation is atomic, and no operation keeps a transaction open after it has
 * resolved. The page "How it works" has a diagram of the states of a delivery, with every change of a state.
 *
 * **Leases.** A worker (one per process) registers, sends heartbeats, and leases the deliveries that it runs. A running
 * delivery stores the worker's id and a fencing token. {@link complete}, {@link fail}, {@link release} and
 * {@link commit} succeed exactly if the delivery is `running` and the token is the current one. No clock decides
 * whether these operations succeed. The clock only decides when a worker that sends no heartbeats is dead.
 *
 * **Unknown outcomes.** A rejected operation may have taken effect, for example if the connection was cut before the
 * response arrived. After {@link claim}, {@link claimSuspect}, or {@link receive} with `assign` has rejected, the
 * worker may hold the leases of deliveries that it never received, and no process would ever free them. The worker
 * therefore registers under a new id. The worker continues the heartbeats of the old id until the attempts and the
 * other claims under the old id have ended, and then retires the old id with a grace of 0 ms.
 *
 * **Ordering.** Two deliveries of one company, handler and ordering key never run at the same time. While one of these
 * deliveries is running, the other due deliveries of the key wait. Claims do not read waiting deliveries, so the cost
 * of a claim does not depend on the backlog of one key. When a delivery stops being `running`, or a pending delivery is
 * skipped, the next waiting delivery of its key (the earliest due) becomes claimable. The store sets the due time of
 * this delivery to now, or keeps its earlier due time.
 *
 * `Tx` is the type of the transaction that {@link commit} passes to its work.
 */
export interface InboxStore<Tx = unknown> {
  /** The guarantees of this store beyond the contract that all stores share. Constant for the lifetime of the store. */
  readonly capabilities: InboxCapabilities;

  /** The expected payments; see `PaymentExpectations`. */
  readonly expectations: ExpectationStore;

  /** The records that processes and operators share, for example redrives that continue after a restart. */
  readonly records: RecordStore;

  /**
   * Creates tables if necessary. Several processes may open one store at the same time. Called once, before all other
   * methods.
   */
  open(): Promise<void>;

  /** Releases all resources. Called once, after all other methods. Methods that are called later reject. */
  close(): Promise<void>;

  /**
   * Adds a live worker, and adds its handlers to the catalog. The patterns of a handler are the patterns of all live
   * workers that have registered the handler. A handler that no live worker has registered keeps its last patterns. A
   * new handler, or a change of patterns, increments {@link HandlerCatalog.version}. Returns the catalog after these
   * changes.
   */
  register(worker: WorkerRegistration): Promise<HandlerCatalog>;

  /**
   * Renews the heartbeat of a worker. After this, the store declares every worker dead whose last heartbeat is older
   * than the worker's `leaseMs`, and frees the running deliveries of all workers that are not live.
   *
   * A freed delivery of a dead worker becomes pending and due now, with the attempt added to the history as `lost`. The
   * attempt is counted only if the delivery was a suspect already; otherwise `attempts` decreases by one. The delivery
   * becomes a suspect ({@link ClaimedDelivery.crashes} increases by one). A freed delivery of a retired worker becomes
   * pending as after {@link release}: the attempt is not counted and not added to the history. The delivery is a
   * suspect only if it was a suspect before.
   *
   * If the previous heartbeat of this worker is older than its own `leaseMs`, the store declares no worker dead. The
   * store may have been unreachable for all workers, so the other workers also get time to renew their heartbeats.
   *
   * If this search for deliveries of dead workers takes longer than a second, the store may search less often than it
   * renews heartbeats.
   *
   * Also ends the pauses whose `until` has passed.
   */
  heartbeat(workerId: string): Promise<HeartbeatResult>;

  /**
   * Retires a worker, because its process closes or uses a new id. If the worker still leases deliveries, the leases
   * stay valid for `graceMs` more milliseconds, and the worker can settle the deliveries. When the grace period has
   * ended, heartbeats of other workers free the deliveries. A store without its own clock may count the grace from the
   * next heartbeat of another worker.
   */
  retire(workerId: string, graceMs: number): Promise<void>;

  /** The handlers that any worker has registered and that were not removed. */
  catalog(): Promise<HandlerCatalog>;

  /**
   * Removes a handler from the catalog. Does not change the deliveries of the handler. Returns `false`, and removes
   * nothing, if a live worker has registered the handler.
   */
  forgetHandler(handler: string): Promise<boolean>;

  /**
   * Stores events, each with a delivery to each of its handlers. An event that is already stored, or is in the same
   * call twice, is not stored again; its receipt has the outcome `duplicate` or `conflict`. Resolves once the events
   * are stored with the durability that the store offers. The result has a receipt for each event, in the order of the
   * events. Rejects within a bounded time if the store is down.
   *
   * Leases a delivery to the worker in {@link IncomingEvent.assign}, as a claim does, if its handler is in `assign` and
   * is not paused, and if no other delivery blocks it. A delivery is blocked if another delivery of the same handler
   * and ordering key runs, waits, or is pending and due. All other deliveries are stored as pending, due now.
   *
   * @throws PaymentsError `inbox_full`; none of the events was stored.
   */
  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]>;

  /**
   * Leases due pending deliveries to the worker, except suspects. For each handler, leases the earliest due deliveries
   * first, at most as many as its limit. Increases the number of attempts of each leased delivery by one. Leases no
   * delivery of a paused handler. Does not lease a due delivery while another delivery to the handler with the same
   * ordering key is running; from then on, the due delivery waits. A store may lease nothing to a worker that is not
   * live, in this method and in {@link receive}. If a store leases a delivery to a worker that is not live, the next
   * heartbeat of any worker frees the delivery.
   */
  claim(request: ClaimRequest): Promise<ClaimedDelivery[]>;

  /**
   * Leases the earliest due suspect of the first handler in the list that has a due suspect. Returns `null` if no
   * suspect is due.
   */
  claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null>;

  /**
   * Whether a later event of the same company and ordering key is done for the handler of a delivery. Later means a
   * later `occurredAt`. A later event whose body was pruned counts as done by every handler.
   */
  newerHandled(lease: Lease): Promise<boolean>;

  /** Marks a delivery done. Adds the attempt to the history, as do {@link fail} and {@link commit}. */
  complete(lease: Lease): Promise<SettleResult>;

  /**
   * Records a failed attempt: the delivery is pending again and due in `retryInMs`, or dead if `retryInMs` is `null`.
   * Stores at most 1,000 characters of the error. The frames replace those of an earlier failed attempt. Makes a
   * suspect a normal delivery again, as do {@link complete} and {@link commit}.
   */
  fail(lease: Lease, failure: FailedAttempt): Promise<SettleResult>;

  /** Makes the delivery pending again, due in `dueInMs` (default: now), without counting the attempt. */
  release(lease: Lease, dueInMs?: number): Promise<SettleResult>;

  /**
   * Runs `work` and marks the delivery done in one transaction. If `work` throws, or the lease is not valid any more,
   * nothing of the transaction is stored. The token is compared at the end of the transaction, so that a long `work`
   * blocks no other operation.
   *
   * @throws PaymentsError `lease_lost`; `commit_unsupported` if `capabilities.transactional` is false. Also throws what
   *   `work` throws.
   */
  commit<R>(lease: Lease, work: (tx: Tx) => R | Promise<R>): Promise<CommitResult<R>>;

  /**
   * Returns the milliseconds until the first delivery of the named handlers becomes claimable by {@link claim}: 0 or
   * less if a delivery is claimable now, `null` if none will become claimable. Deliveries of paused handlers, waiting
   * deliveries and suspects do not count.
   */
  nextDueInMs(handlers: readonly string[]): Promise<number | null>;

  /**
   * Calls `listener` if a delivery may have become due through another process (or this one). The call is only a hint:
   * calls may be missing or superfluous. A store that is not shared need not call the listener, because a process wakes
   * its own worker. Returns a function that removes the listener.
   */
  onWake(listener: () => void): () => void;

  /**
   * Returns the event with this id, with its body, headers, repeats and histories; `undefined` if the id is not known.
   */
  find(company: string, id: string): Promise<StoredEvent | undefined>;

  /**
   * Returns the events of a company whose transaction id or reference is exactly `payment`, the newest first, at most
   * {@link MAX_OF_PAYMENT}. The events have all fields but their bodies.
   */
  eventsOf(company: string, payment: string): Promise<StoredEvent[]>;

  /**
   * Returns events in the order of receipt, newest or oldest first, `limit` at a time (1 to 1,000). A call may end
   * after it has compared 20,000 events with the filter. The page then contains the matching events that were found so
   * far, and `next` continues the list.
   */
  list(query: {
    readonly filter: EventFilter;
    readonly order: 'newest' | 'oldest';
    readonly limit: number;
    /** The value of `next` in the previous page; `null` for the first page. */
    readonly after: string | null;
  }): Promise<EventPage>;

  /**
   * Counts the stored deliveries and events, each count up to a cap. The cost does not depend on the number of events,
   * except in memory, where a call takes a few milliseconds for 100,000 events.
   */
  stats(): Promise<InboxStats>;

  /**
   * Returns the deliveries that are pending, running or dead and have at least one attempt that failed or was lost,
   * those of the newest event first. Reads these deliveries in slices, and returns about the 10,000 newest; `more` is
   * `true` if there are more.
   */
  failures(): Promise<{ readonly failed: readonly FailedDelivery[]; readonly more: boolean }>;

  /**
   * Computes the activity of the last `minutes` (1 to 1,440) closed minutes, and the counts of the events that were
   * received since the first of these minutes began. Reads these events, but at least the 10,000 newest events and at
   * most about the 100,000 newest. Reads slice by slice, so that no receive waits.
   *
   * @param bodiesMs the `bodiesMs` of {@link prune}: events that were received longer ago may have been pruned
   */
  activity(minutes: number, bodiesMs: number): Promise<InboxActivity>;

  /**
   * Makes dead, skipped and pending deliveries due again; with `force`, also done deliveries. Ignores running
   * deliveries and pruned events. Adds a delivery if the event has no delivery to the handler. `dueInMs[i]` is the
   * delay until selection `i` becomes due; a pending delivery that is due earlier keeps its due time. The attempts of a
   * delivery start from 0 again, unless it was pending. Returns how many deliveries it changed or added; a pending
   * delivery counts as changed. With `unchangedSince`, ignores deliveries that started an attempt, or became done, dead
   * or skipped, after this time.
   *
   * When the first delivery is added to a stale event, the event stops being stale and counts as the event of its
   * transaction. If `fulfils` contains its type, it fulfils expectations as a new event does on receipt. As the
   * reference of this event, the databases use the reference in its {@link IncomingEvent.summary}, because they store
   * no other reference. If another event already counts as the event of the transaction, no delivery is added; see
   * {@link IncomingEvent.oncePerTransaction}.
   */
  redrive(
    selections: readonly DeliverySelection[],
    options: {
      readonly force: boolean;
      readonly dueInMs: readonly number[];
      /** The event types that fulfil expectations. Default: none. */
      readonly fulfils?: readonly string[];
      /** A time of the store clock. Default: no limit. */
      readonly unchangedSince?: Date | undefined;
    },
  ): Promise<number>;

  /**
   * Marks pending and dead deliveries skipped, and makes suspects normal deliveries. Returns how many deliveries it
   * skipped.
   */
  skip(selections: readonly DeliverySelection[]): Promise<number>;

  /**
   * Pauses a handler, or all handlers for `*`: no process claims its deliveries. With `false`, ends the pause. A pause
   * replaces an earlier pause of the same handler. After `until`, by the wall clock, the next {@link heartbeat} of any
   * worker ends the pause.
   */
  pause(handler: string, paused: boolean, facts?: PauseFacts): Promise<void>;

  /**
   * Deletes old data, at most `limit` events at a time (1 to 10,000):
   *
   * - the bodies and deliveries of events that were received more than `bodiesMs` ago and whose deliveries are all done
   *   or skipped. A tombstone of each event stays in the store.
   * - tombstones of events that were received more than `tombstonesMs` ago and whose own time (`occurredAt`) is also
   *   more than `tombstonesMs` ago. An event whose own time is in the future keeps its tombstone longer, so that every
   *   deleted event is older than `tombstonesMs`.
   * - expectations; see {@link ExpectationStore}.
   * - shared records, when no other old data is left; see `RECORD_RETENTION_MS`.
   *
   * Returns how many events and expectations it changed. An old event with an unfinished delivery is not pruned. Each
   * call checks only a limited number of such events again. Therefore, an event may be pruned some calls after its last
   * delivery has finished.
   */
  prune(request: {
    readonly bodiesMs: number;
    readonly tombstonesMs: number;
    readonly limit: number;
  }): Promise<number>;
}

/** The return value of `memoryInbox()`, `sqliteInbox()` and `postgresInbox()`: creates a store for each application. */
export interface InboxDefinition {
  /** Name of the inbox in messages, for example `memory`. */
  readonly name: string;
  /** Creates a store without opening it. The store uses the clock of `runtime` if it has no clock of its own. */
  create(runtime: PaymentsRuntime): InboxStore;
}
