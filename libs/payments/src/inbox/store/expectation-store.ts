import type { PaymentEventSource } from '../../events/payment-event.js';
import { boundedError } from './stored-event.js';
import type { CappedCount, IncomingEvent, StoreReceipt } from './stored-event.js';

/**
 * Name of the entry in the handler catalog for the processes with the option `reconcile`. The patterns of the entry are
 * the event types that fulfil an expectation. This name is never the handler of a delivery. `InboxStore.pause` with
 * this name pauses polls.
 */
export const POLL_HANDLER = '@payments/poll';

/**
 * State of an expectation.
 *
 * - `waiting`: no event has arrived yet, and the schedule has not ended.
 * - `fulfilled`: the inbox received an event of the transaction from a webhook request or a poll.
 * - `overdue`: no event arrived before the end of the schedule. An overdue expectation is not a failure, because an
 *   event that arrives later fulfils the expectation.
 * - `cancelled`: the application or an operator cancelled the expectation.
 */
export type ExpectationState = 'waiting' | 'fulfilled' | 'overdue' | 'cancelled';

/**
 * Result of a poll.
 *
 * - `event`: the service reported an event of the transaction, and the inbox stored this event or had already stored
 *   it.
 * - `pending`: the service reported that the transaction is not complete.
 * - `unknown`: the poll gave no usable result, for example after a 404, a 5xx, a timeout, or an error of `interpret`.
 * - `contradiction`: the service reported an event of the transaction, but the inbox has an event of another type for
 *   this transaction. The reported event was not stored.
 */
export type PollResult = 'event' | 'pending' | 'unknown' | 'contradiction';

/**
 * A payment for which the application expects an event. The company has 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`,
 * the transaction id has 1 to 255 characters without control characters, and the schedule has 1 to 100 delays.
 */
export interface NewExpectation extends Pick<
  StoredExpectation,
  'company' | 'transactionId' | 'schedule'
> {
  /**
   * The application's reference of the payment, unique within the company: 1 to 200 characters without control
   * characters.
   */
  readonly reference: string;
  /**
   * Milliseconds until the expectation becomes overdue: a whole number, negative if this time has passed. `null` if it
   * becomes overdue after the last delay of the schedule. The value is a duration, so that a difference between the
   * clocks of the application and the store has no effect.
   */
  readonly dueInMs: number | null;
  /** Milliseconds until the first poll. 0 or more. */
  readonly firstPollInMs: number;
}

/** An expectation as stored. */
export interface StoredExpectation {
  readonly company: string;
  readonly reference: string;
  /** The service's id of the transaction; `null` if it is not known yet. */
  readonly transactionId: string | null;
  /** What is known about the request for the payment; see `PaymentExpectations.request()`. */
  readonly request: RequestState;
  /**
   * When the expectation becomes overdue, by the store clock; `null` if it becomes overdue after the last delay of the
   * schedule.
   */
  readonly dueBy: Date | null;
  /** Milliseconds from the creation of the expectation to each of its polls, ascending. */
  readonly schedule: readonly number[];
  readonly state: ExpectationState;
  /** When the expectation was stored, or opened again, by the store clock. */
  readonly createdAt: Date;
  /**
   * Milliseconds since {@link createdAt}. If the store has a monotonic clock, the age is measured with this clock. The
   * time of the next poll is computed from this age.
   */
  readonly ageMs: number;
  /** How many polls have ended. */
  readonly polls: number;
  /** How many polls in a row were lost. A poll is lost if its process exits or hangs before the poll has a result. */
  readonly lostPolls: number;
  /** The last poll; `null` before the first. */
  readonly lastPoll: {
    readonly at: Date;
    readonly result: PollResult;
    /** One line about the result, at most 1,000 characters; `null` if there is none. */
    readonly detail: string | null;
  } | null;
  /** When the next poll is due; `null` if no poll is scheduled or a poll is running. */
  readonly nextPollAt: Date | null;
  /** The event that fulfilled the expectation; `null` unless the state is `fulfilled`. */
  readonly fulfilled: {
    readonly at: Date;
    /** How the event was received: `webhook` or `poll`. */
    readonly by: PaymentEventSource;
    readonly eventId: string;
    readonly eventType: string;
  } | null;
  /** When and why the expectation was cancelled; `null` unless the state is `cancelled`. */
  readonly cancelled: {
    readonly at: Date;
    /** The name of the operator, 1 to 100 characters; `null` if the application cancelled the expectation. */
    readonly by: string | null;
    /** Why, 1 to 500 characters; `null` if no reason was given. */
    readonly note: string | null;
  } | null;
  /** One line about the last poll that contradicted the inbox, at most 1,000 characters; `null` if there was none. */
  readonly contradiction: string | null;
  /**
   * Id of the last event of another transaction with the same reference; `null` without such an event. The event did
   * not fulfil the expectation, and may mean that the customer has paid twice.
   */
  readonly otherEventId: string | null;
}

export type CancelReason = Omit<NonNullable<StoredExpectation['cancelled']>, 'at'>;

/** The right to settle one poll. */
export interface PollLease {
  /** The number of the expectation in the store. Pass a lease to the store unchanged. */
  readonly seq: number;
  /** Fencing token: increases with every claim. */
  readonly token: number;
}

/** An expectation whose poll is due, leased to the caller. The `nextPollAt` of a claimed expectation is `null`. */
export interface ClaimedPoll extends PollLease {
  readonly expectation: StoredExpectation;
}

/** What a poll found, and when the next poll is due. */
export interface PollOutcome {
  /** What the poll found. With `event`, {@link PollSettlement.event} contains the event. */
  readonly result: 'event' | 'pending' | 'unknown';
  /** See {@link StoredExpectation.lastPoll}. The store cuts the detail to 1,000 characters. */
  readonly detail: string | null;
  /**
   * The delay until the next poll in milliseconds. With `overdue`, a waiting expectation becomes overdue, and
   * {@link againInMs} is the delay until its next poll. With `end`, no poll is scheduled and the state does not change.
   */
  readonly next: number | 'overdue' | 'end';
  /** With `next: 'overdue'`: milliseconds until the overdue expectation is polled again. Default: never. */
  readonly againInMs?: number | null;
}

export interface PollSettlement {
  readonly lease: PollLease;
  readonly outcome: PollOutcome;
  /**
   * With the result `event`: the event that the poll found; its `oncePerTransaction` must be `true`. Otherwise, with
   * `next: 'overdue'`: the event for the handlers of overdue payments, or `null` if there is no such handler.
   */
  readonly event: IncomingEvent | null;
  /**
   * The event types that polls find. Stored events of the transaction with one of these types decide whether a found
   * event is a contradiction, and whether an expectation is overdue.
   */
  readonly eventTypes: readonly string[];
  /**
   * Whether to leave {@link StoredExpectation.lostPolls} unchanged. Set this field to `true` if the poll sent no
   * request to the service.
   */
  readonly keepLost: boolean;
}

export interface SettledPoll {
  /**
   * Whether the poll was recorded. Nothing was stored if the lease is not valid any more, because another process has
   * claimed the poll, or if {@link receipt} is `outdated`.
   */
  readonly settled: boolean;
  /** The recorded result: the result of the outcome, or `contradiction`. */
  readonly result: PollResult;
  /** The recorded detail. For a contradiction, it contains the id and the type of the stored event. */
  readonly detail: string | null;
  readonly state: ExpectationState;
  /** Whether this settlement fulfilled the expectation or made it overdue. */
  readonly changed: boolean;
  /** Milliseconds until the next poll; `null` if none is scheduled. */
  readonly nextPollInMs: number | null;
  /** The receipt of {@link PollSettlement.event}; `null` if the store did not receive it. */
  readonly receipt: StoreReceipt | null;
}

/** What a store changes when it settles a poll. */
export interface PollChange {
  /** The event to receive; `null` if there is none. */
  readonly event: IncomingEvent | null;
  /**
   * The id of the stored event that fulfils the expectation if the expectation is open. With `null`, the event that the
   * poll found fulfils the expectation, if the poll found one. If that event is a copy, its stored original fulfils the
   * expectation.
   */
  readonly storedId: string | null;
  readonly result: PollResult;
  readonly detail: string | null;
  /** Milliseconds until the next poll of an expectation that stays open; `null` if none is scheduled. */
  readonly delayMs: number | null;
}

/**
 * Decides what {@link ExpectationStore.settlePoll} stores.
 *
 * @param stored the stored events of the transaction whose type is in `eventTypes`, at most one of each type
 */
export function pollChange(
  { outcome, event }: PollSettlement,
  state: ExpectationState,
  stored: readonly { readonly id: string; readonly eventType: string }[],
): PollChange {
  const { result, next, againInMs = null } = outcome;
  const isFound = result === 'event';
  const decides = isFound || (next === 'overdue' && state === 'waiting');
  const isKnown = isFound && stored.some(({ eventType }) => eventType === event!.eventType);
  const first = decides && !isKnown ? stored[0] : undefined;
  const contradiction =
    isFound && first !== undefined
      ? `The service reports "${event!.eventType}", but the inbox has event ${first.id} of type "${first.eventType}" for ` +
        'the same transaction. Nothing was changed.'
      : null;
  const detail = contradiction ?? outcome.detail;
  return {
    event: decides && first === undefined ? event : null,
    storedId: first?.id ?? null,
    result: contradiction === null ? result : 'contradiction',
    detail: detail && boundedError(detail),
    delayMs: typeof next === 'number' ? next : next === 'overdue' ? againInMs : null,
  };
}

export function isOpen(state: ExpectationState): boolean {
  return state === 'waiting' || state === 'overdue';
}

/**
 * Returns the result of a settlement.
 *
 * @param state the new state of the expectation; `undefined` if nothing was stored
 */
export function settledPoll(
  { result, detail, delayMs }: PollChange,
  before: ExpectationState,
  state: ExpectationState | undefined,
  receipt: StoreReceipt | null = null,
): SettledPoll {
  const settled = state !== undefined;
  const nextPollInMs = settled && isOpen(state) ? delayMs : null;
  const changed = settled && state !== before;
  return { settled, result, detail, state: state ?? before, changed, nextPollInMs, receipt };
}

/**
 * The state of the request for a payment, which decides whether `PaymentExpectations.request()` may send a request now.
 *
 * - `never`: no request was sent, or the last request provably had no effect.
 * - `answered`: the service responded to the last request with an error.
 * - `unknown`: the outcome of the last request is not known, for example because the process that sent it exited.
 * - `running`: another call is sending a request.
 * - `accepted`: the payment was requested.
 */
export type RequestState = 'never' | 'answered' | 'unknown' | 'running' | 'accepted';

export interface StartedRequest {
  readonly expectation: StoredExpectation;
  /** The state of the request before this call. The state is also `accepted` if a transaction id is attached. */
  readonly previous: RequestState;
  /**
   * The token to pass to {@link ExpectationStore.endRequest}; `null` if the caller must not send a request, because a
   * request is running or accepted, or the expectation is fulfilled or cancelled.
   */
  readonly token: number | null;
}

/** Selects expectations: all given fields must match. */
export interface ExpectationFilter {
  readonly company?: string;
  /** Only expectations with this transaction id. */
  readonly transactionId?: string;
  readonly state?: ExpectationState;
  /**
   * Only overdue expectations. `unpaid`: those that {@link ExpectationCounts.overdueUnpaid} counts. `unknown`: those
   * that {@link ExpectationCounts.overdueUnknown} counts.
   */
  readonly overdue?: 'unpaid' | 'unknown';
  /** Only expectations that were fulfilled by an event from this source. */
  readonly fulfilledBy?: 'webhook' | 'poll';
  /** Only expectations with a contradiction. */
  readonly contradictory?: boolean;
  /** Only expectations that were created at this time or later. */
  readonly from?: Date;
  /** Only expectations that were created before this time. */
  readonly to?: Date;
  /** Only expectations whose reference (`A` to `Z` match in either case) or transaction id begins with this text. */
  readonly search?: string;
}

/** A page of expectations. */
export interface ExpectationPage {
  readonly expectations: readonly StoredExpectation[];
  /** The value to pass as `after` to get the next page; `null` on the last page. */
  readonly next: string | null;
}

/** How many expectations are open. */
export interface ExpectationCounts {
  readonly waiting: CappedCount;
  /** Overdue expectations whose last poll was `pending`, so the customer has not paid. */
  readonly overdueUnpaid: CappedCount;
  /** Overdue expectations whose last poll gave no usable result, so it is unknown whether the customer paid. */
  readonly overdueUnknown: CappedCount;
}

export interface ExpectationName {
  readonly company: string;
  readonly reference: string;
}

/**
 * Stores expectations, as part of {@link InboxStore}. Each expectation has one row. Every operation is atomic, and
 * decides while it holds the lock of this row. The page "How it works" has a diagram of the states of an
 * expectation.
 *
 * `InboxStore.receive` fulfils expectations in its own transaction. An event fulfils expectations of its company if
 * `IncomingEvent.fulfils` is set and the receipt is `stored` or `duplicate`. The event fulfils each `waiting` or
 * `overdue` expectation whose transaction id is the event's ordering key, and each that has no transaction id and whose
 * reference is `IncomingEvent.reference`. The fulfilled expectation contains the stored event and the source of that
 * event, has no next poll, and is in `StoreReceipt.fulfilled`. An expectation with the event's reference may belong to
 * another transaction, because it has another transaction id or was fulfilled by an event of another transaction. The
 * event does not fulfil such an expectation, but sets its {@link StoredExpectation.otherEventId}. If the expectation is
 * cancelled, the event changes nothing. If no expectation is stored, `receive` runs no additional statement.
 *
 * **Polls.** A poll is claimed for a limited time. A poll that is not settled or released before its lease ends is
 * lost, and is due again. Polls are idempotent, so two polls may overlap; only the newest lease is valid.
 *
 * Pruning deletes a cancelled expectation that was created more than `tombstonesMs` ago, and a fulfilled expectation
 * that was both created and fulfilled more than `tombstonesMs` ago. Pruning never deletes a waiting or overdue
 * expectation.
 */
export interface ExpectationStore {
  /**
   * Stores an expectation in the state `waiting`, with its first poll due in `firstPollInMs`. With `tx`, stores the
   * expectation in this open transaction of the application, which must be on the database of the store. A cancelled
   * expectation with the same reference is opened again, as a new expectation. A request that is still running for the
   * cancelled expectation continues. Returns `false`, and changes nothing, if the company has an expectation with this
   * reference in another state.
   *
   * @throws TypeError if the store cannot use `tx`. PaymentsError `inbox_full`.
   */
  expect(expectation: NewExpectation, tx?: unknown): Promise<boolean>;

  /**
   * Sets the transaction id of an expectation. Resolves with:
   *
   * - `attached` if the id was set, or the expectation has this id already.
   * - `conflict` if the expectation has another id, which it keeps, or if another expectation of the company that is
   *   not cancelled has this id. The id of another payment is not attached, because events of that payment would then
   *   fulfil this expectation.
   * - `cancelled` if the expectation is cancelled.
   * - `unknown` if there is no such expectation.
   *
   * With `conflict`, `cancelled` and `unknown`, nothing is changed. With `attached`, the request of the expectation is
   * `accepted`, and {@link StoredExpectation.lostPolls} is 0. Calls for two expectations at the same moment may both
   * attach the same id. The event of the transaction with this id fulfils both expectations.
   *
   * If the expectation had no transaction id, and an event of another transaction had fulfilled it by its reference,
   * the expectation is `waiting` again and has a poll due now. The id of that event becomes
   * {@link StoredExpectation.otherEventId}. A poll of an overdue expectation is due now.
   */
  attach(
    company: string,
    reference: string,
    transactionId: string,
  ): Promise<'attached' | 'conflict' | 'cancelled' | 'unknown'>;

  /**
   * Makes a waiting or overdue expectation `cancelled`, without a next poll, and stores the reason. Returns whether the
   * state changed.
   */
  cancel(company: string, reference: string, reason?: CancelReason): Promise<boolean>;

  /**
   * Begins a request for the payment, and returns a token for {@link endRequest}. Returns no token if a request is
   * running or accepted, or if the expectation is fulfilled or cancelled. If a request does not end within `leaseMs`,
   * its state becomes `unknown`. Resolves with `undefined` if there is no such expectation.
   */
  startRequest(
    company: string,
    reference: string,
    leaseMs: number,
  ): Promise<StartedRequest | undefined>;

  /**
   * Ends a request. Returns `false`, and changes nothing, if the token is not the newest token. With `cancelled`, the
   * state of the request becomes `never`, and the expectation is cancelled if it is waiting and has no transaction id.
   */
  endRequest(
    name: ExpectationName,
    token: number,
    end: Exclude<RequestState, 'running'> | 'cancelled',
  ): Promise<boolean>;

  find(company: string, reference: string): Promise<StoredExpectation | undefined>;

  /**
   * Returns expectations by creation, newest first, `limit` at a time (1 to 1,000). A call may end after it has
   * compared 20,000 expectations with the filter. The page then contains the matching expectations that were found so
   * far, and `next` continues the list.
   */
  list(query: {
    readonly filter: ExpectationFilter;
    readonly limit: number;
    readonly after: string | null;
  }): Promise<ExpectationPage>;

  /**
   * Leases at most `limit` due polls for `leaseMs` milliseconds, the earliest due first. A poll whose lease has ended
   * is due again, and its {@link StoredExpectation.lostPolls} increases by one. Returns no polls while polls are paused
   * (`@payments/poll` or `*`).
   */
  claimPolls(request: {
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<readonly ClaimedPoll[]>;

  /**
   * Ends leases without recording a poll: the poll of lease `i` is due again in `dueInMs[i]` milliseconds. Ignores
   * leases that are not valid any more.
   */
  releasePolls(leases: readonly PollLease[], dueInMs: readonly number[]): Promise<void>;

  /**
   * Records a poll, if its lease is valid, and resets {@link StoredExpectation.lostPolls} unless `keepLost`. In the
   * same transaction:
   *
   * - With the result `event`: receives the event and fulfils the expectation with it. If the expectation is cancelled,
   *   the event is received too, and the expectation stays cancelled. However, the found event contradicts the inbox if
   *   the inbox has events of this transaction with types of `eventTypes`, but none with the type of the found event.
   *   The store then does not receive the found event, records the result `contradiction`, and also stores its detail
   *   as {@link StoredExpectation.contradiction}. In this case, the stored event fulfils the expectation if the
   *   expectation is open.
   * - With `next: 'overdue'`, if the expectation is still `waiting`: a stored event of its transaction with one of
   *   `eventTypes` fulfils it. Without such a stored event, the expectation becomes `overdue`, and
   *   {@link PollSettlement.event} is received.
   * - The next poll is scheduled only if the expectation is still `waiting` or `overdue`.
   */
  settlePoll(settlement: PollSettlement): Promise<SettledPoll>;

  /**
   * Makes polls due: the poll of selection `i` becomes due in `dueInMs[i]` milliseconds, unless it is due earlier.
   * Ignores cancelled expectations and running polls. Reduces `lostPolls` to at most 2, so that these polls send a
   * request to the service: after 3 lost polls in a row, only the last poll of a schedule sends a request. Returns how
   * many polls it made due.
   */
  pollNow(selections: readonly ExpectationName[], dueInMs: readonly number[]): Promise<number>;

  /**
   * Returns the milliseconds until the next poll is due or a lease ends: 0 or less if a poll is due now; `null` if
   * there is no such poll, or polls are paused.
   */
  nextPollInMs(): Promise<number | null>;

  /** Counts open expectations, each count up to 10,000. */
  counts(): Promise<ExpectationCounts>;
}
