import type { PaymentEventSource } from '../../events/payment-event.js';
import type { CappedCount, IncomingEvent, StoreReceipt } from './stored-event.js';

/**
 * Name under which processes with the option `reconcile` appear in the handler catalog. Its patterns are the event types
 * that fulfil an expectation. It is never the handler of a delivery. `InboxStore.pause` with this name pauses polls.
 */
export const POLL_HANDLER = '@payments/poll';

/**
 * State of an expectation.
 *
 * - `waiting`: no event has arrived yet, and the schedule has polls left.
 * - `fulfilled`: a webhook or a poll brought an event of the transaction.
 * - `overdue`: the schedule has ended without an event. It is not a failure: an event that arrives later fulfils the
 *   expectation.
 * - `cancelled`: the application ended it.
 */
export type ExpectationState = 'waiting' | 'fulfilled' | 'overdue' | 'cancelled';

/**
 * Result of a poll.
 *
 * - `event`: the service reported an event of the transaction, and the inbox stored it or knew it already.
 * - `pending`: the service knows the transaction, and it is not complete.
 * - `unknown`: the poll gave no usable result, for example after a 404, a 5xx, a timeout, or an error of `interpret`.
 * - `contradiction`: the service reported another event of the transaction than the inbox has. Nothing was stored.
 */
export type PollResult = 'event' | 'pending' | 'unknown' | 'contradiction';

/** The detail of a {@link PollResult} `contradiction`. */
export function contradictionDetail(
  foundType: string,
  stored: { readonly id: string; readonly eventType: string },
): string {
  return (
    `The service reports "${foundType}", and the inbox has event ${stored.id} of type "${stored.eventType}" of the same ` +
    'transaction. Nothing was changed.'
  );
}

/**
 * A payment for which the application expects an event. The company has 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`, the
 * transaction id has 1 to 255 characters without control characters, and the schedule has 1 to 100 delays.
 */
export interface NewExpectation extends Pick<
  StoredExpectation,
  'company' | 'transactionId' | 'schedule'
> {
  /** The application's reference of the payment, unique within the company: 1 to 200 characters, none of them a control character. */
  readonly reference: string;
  /**
   * Milliseconds until the expectation becomes overdue, a whole number, negative in the past; `null`: after the last
   * delay of the schedule. A duration, so that a difference between the clocks of application and store has no effect.
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
  /** When the expectation becomes overdue, by the store clock; `null`: after the last delay of the schedule. */
  readonly dueBy: Date | null;
  /** Delays of the polls after the creation, in milliseconds, ascending. */
  readonly schedule: readonly number[];
  readonly state: ExpectationState;
  /** When it was stored, or opened again, by the store clock. */
  readonly createdAt: Date;
  /**
   * Milliseconds since {@link createdAt}, by a clock that a change of the system time does not move, if the store has
   * one. The next poll is computed from it.
   */
  readonly ageMs: number;
  /** How many polls have ended. */
  readonly polls: number;
  /** How many polls in a row have not ended, because their process ended. */
  readonly lostPolls: number;
  /** The last poll; `null` before the first. */
  readonly lastPoll: {
    readonly at: Date;
    readonly result: PollResult;
    /** One line about the result, at most 1,000 characters; `null` without one. */
    readonly detail: string | null;
  } | null;
  /** When the next poll is due; `null` if none is scheduled or one is running. */
  readonly nextPollAt: Date | null;
  /** The event that fulfilled the expectation; `null` unless the state is `fulfilled`. */
  readonly fulfilled: {
    readonly at: Date;
    /** How the event was received: `webhook` or `poll`. */
    readonly by: PaymentEventSource;
    readonly eventId: string;
    readonly eventType: string;
  } | null;
  /** One line about the last poll that contradicted the inbox, at most 1,000 characters; `null` without one. */
  readonly contradiction: string | null;
  /**
   * Id of the last event of another transaction with the same reference: the customer may have paid twice. It did not
   * fulfil the expectation. `null` without one.
   */
  readonly otherEventId: string | null;
}

/** The right to settle one poll. */
export interface PollLease {
  /** The store's own number of the expectation. Pass a lease back as the store returned it. */
  readonly seq: number;
  /** Fencing token: increases with every claim. */
  readonly token: number;
}

/** An expectation whose poll is due, leased to the caller. Its `nextPollAt` is `null`. */
export interface ClaimedPoll extends PollLease {
  readonly expectation: StoredExpectation;
}

/** What a poll found, and when the next one is due. */
export interface PollOutcome {
  /** `event`: {@link PollSettlement.event} has the event. */
  readonly result: 'event' | 'pending' | 'unknown';
  /** See {@link StoredExpectation.lastPoll}. The store cuts it to 1,000 characters. */
  readonly detail: string | null;
  /**
   * The delay until the next poll in milliseconds; `overdue`: none, and a waiting expectation becomes overdue; `end`:
   * none, and the state stays as it is.
   */
  readonly next: number | 'overdue' | 'end';
  /** With `next: 'overdue'`: the delay until the overdue expectation is polled again; default: never. */
  readonly againInMs?: number | null;
}

/** The delay until the next poll of an expectation that stays open, in milliseconds; `null` if none is scheduled. */
export function nextDelayMs({ next, againInMs = null }: PollOutcome): number | null {
  if (typeof next === 'number') return next;
  return next === 'overdue' ? againInMs : null;
}

/** The arguments of {@link ExpectationStore.settlePoll}. */
export interface PollSettlement {
  readonly lease: PollLease;
  readonly outcome: PollOutcome;
  /**
   * With the result `event`: the event that the poll found, with `oncePerTransaction`.
   * Otherwise, with `next: 'overdue'`: the event for the handlers of overdue payments, or `null` if there is no such
   * handler.
   */
  readonly event: IncomingEvent | null;
  /**
   * The event types that polls find. Stored events of the transaction with one of these types decide whether a found
   * event is a contradiction, and whether an expectation is overdue.
   */
  readonly eventTypes: readonly string[];
  /** Whether {@link StoredExpectation.lostPolls} stays as it is, because the service was not asked. */
  readonly keepLost: boolean;
}

/** The result of {@link ExpectationStore.settlePoll}. */
export interface SettledPoll {
  /**
   * `false`: the lease is not valid any more, because another process has claimed the poll, or {@link receipt} is
   * `outdated`. Nothing was stored.
   */
  readonly settled: boolean;
  /** The result as it was recorded: that of the outcome, or `contradiction`. */
  readonly result: PollResult;
  /** The detail as it was recorded. For a contradiction: the id and the type of the stored event. */
  readonly detail: string | null;
  /** The state of the expectation now. */
  readonly state: ExpectationState;
  /** Whether this settlement changed the state: it fulfilled the expectation, or made it overdue. */
  readonly changed: boolean;
  /** Milliseconds until the next poll; `null` if none is scheduled. */
  readonly nextPollInMs: number | null;
  /** The receipt of {@link PollSettlement.event}; `null` if the store did not receive it. */
  readonly receipt: StoreReceipt | null;
}

/**
 * Why `PaymentExpectations.request()` may not send a request now, or what is known about the request before.
 *
 * - `never`: none was made, or the last one provably had no effect.
 * - `answered`: the service responded with an error.
 * - `unknown`: the process of the last one ended, or its outcome is unknown.
 * - `running`: another call is sending one.
 * - `accepted`: the payment was requested.
 */
export type RequestState = 'never' | 'answered' | 'unknown' | 'running' | 'accepted';

/** The result of {@link ExpectationStore.startRequest}. */
export interface StartedRequest {
  readonly expectation: StoredExpectation;
  /** The state before this call. `accepted` also if a transaction id is attached. */
  readonly previous: RequestState;
  /**
   * The right to end the request; `null` if the caller must not send one: the request is running or accepted, or the
   * expectation is fulfilled or cancelled.
   */
  readonly token: number | null;
}

/** Selects expectations: all given fields must match. */
export interface ExpectationFilter {
  readonly company?: string;
  /** Only expectations with this transaction id. */
  readonly transactionId?: string;
  readonly state?: ExpectationState;
  /** Only fulfilled expectations whose event was received in this way. */
  readonly fulfilledBy?: 'webhook' | 'poll';
  /** Only expectations with a contradiction. */
  readonly contradictory?: boolean;
  /** Created at this time or later. */
  readonly from?: Date;
  /** Created before this time. */
  readonly to?: Date;
  /** The reference or the transaction id begins with this text. */
  readonly search?: string;
}

/** A page of expectations. */
export interface ExpectationPage {
  readonly expectations: readonly StoredExpectation[];
  /** Pass it as `after` for the next page; `null` on the last page. */
  readonly next: string | null;
}

/** How many expectations are open. */
export interface ExpectationCounts {
  readonly waiting: CappedCount;
  /** Overdue, and the last poll was `pending`: the customer has not paid. */
  readonly overdueUnpaid: CappedCount;
  /** Overdue, and the last poll gave no usable result: nobody knows whether the customer paid. */
  readonly overdueUnknown: CappedCount;
}

/** Identifies one expectation. */
export interface ExpectationName {
  readonly company: string;
  readonly reference: string;
}

/**
 * Stores expectations. Part of {@link InboxStore}. Every operation is atomic, and decides under the lock of the one row
 * that an expectation has. The guide has a diagram of its states.
 *
 * `InboxStore.receive` fulfils expectations in its own transaction: an event with `IncomingEvent.fulfils` set, whose
 * receipt is `stored` or `duplicate`, fulfils each `waiting` or `overdue` expectation of its company whose transaction id
 * is the event's ordering key or, if it has no transaction id, whose reference is `IncomingEvent.reference`. The
 * expectation then names the stored event and the source of that event, has no next poll, and is in
 * `StoreReceipt.fulfilled`. An expectation with that reference and another transaction (its own, or that of the event
 * that fulfilled it) only notes the event, in {@link StoredExpectation.otherEventId}, unless it is cancelled. If no
 * expectation is stored, `receive` runs no additional statement.
 *
 * **Polls.** Polls are claimed by time: a claimed poll that is not settled or released before its lease ends is lost, and
 * due again. Polls are idempotent, so two may overlap; only the newest lease is valid.
 *
 * Pruning deletes fulfilled and cancelled expectations that were created and fulfilled more than `tombstonesMs` ago. It
 * never deletes one that is waiting or overdue.
 */
export interface ExpectationStore {
  /**
   * Stores an expectation in the state `waiting`, with its first poll due in `firstPollInMs`. With `tx`, stores it in
   * this open transaction of the application, which must be on the database of the store. A cancelled expectation with
   * the same reference is opened again, as a new one; a request that is still running for it goes on. Returns `false`,
   * and changes nothing, if the company has one with that reference in another state.
   *
   * @throws TypeError if the store cannot use `tx`. PaymentsError `inbox_full`.
   */
  expect(expectation: NewExpectation, tx?: unknown): Promise<boolean>;

  /**
   * Sets the transaction id of an expectation. Resolves with `attached`, also if it has this id already; with `conflict`
   * if it has another id, which it keeps, or if another expectation of the company that is not cancelled has this id: a
   * response of another payment must not hide this one; with `cancelled` if it is cancelled; with `unknown` if there is no
   * such expectation. Only `attached` changes anything. The request of the expectation is then `accepted`, and
   * {@link StoredExpectation.lostPolls} is 0. Calls for two expectations at the same moment may both attach one id, and the
   * event of that transaction then fulfils both.
   *
   * A fulfilled expectation without a transaction id, which an event of another transaction fulfilled by its reference,
   * waits again, with a poll due now, and that event becomes {@link StoredExpectation.otherEventId}. An overdue one has a
   * poll due now.
   */
  attach(
    company: string,
    reference: string,
    transactionId: string,
  ): Promise<'attached' | 'conflict' | 'cancelled' | 'unknown'>;

  /** Makes a waiting or overdue expectation `cancelled`, without a next poll. Returns whether it did. */
  cancel(company: string, reference: string): Promise<boolean>;

  /**
   * Begins a request for the payment: grants the token, unless a request is running or accepted, or the expectation is
   * neither waiting nor overdue. A request that does not end within `leaseMs` is `unknown` from then on. `undefined` if
   * there is no such expectation.
   */
  startRequest(
    company: string,
    reference: string,
    leaseMs: number,
  ): Promise<StartedRequest | undefined>;

  /**
   * Ends a request. Returns `false`, and changes nothing, if the token is not the newest one. `cancelled`: the state of
   * the request is `never`, and the expectation is cancelled if it is waiting and has no transaction id.
   */
  endRequest(
    name: ExpectationName,
    token: number,
    end: Exclude<RequestState, 'running'> | 'cancelled',
  ): Promise<boolean>;

  /** The expectation with that reference. */
  find(company: string, reference: string): Promise<StoredExpectation | undefined>;

  /**
   * Expectations by creation, newest first, `limit` at a time (1 to 1,000). A call may end after 20,000 expectations that it
   * compared with the filter: the page has those that match, and `next`.
   */
  list(query: {
    readonly filter: ExpectationFilter;
    readonly limit: number;
    readonly after: string | null;
  }): Promise<ExpectationPage>;

  /**
   * Leases due polls, the earliest due first, at most `limit`, for `leaseMs`. A poll whose lease has ended is due, and
   * {@link StoredExpectation.lostPolls} increases by one. Returns none while polls are paused (`@payments/poll` or `*`).
   */
  claimPolls(request: {
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<readonly ClaimedPoll[]>;

  /**
   * Makes claimed polls due in `dueInMs[i]` without recording a poll. Ignores leases that are not valid any more.
   */
  releasePolls(leases: readonly PollLease[], dueInMs: readonly number[]): Promise<void>;

  /**
   * Records a poll, if its lease is valid, and resets {@link StoredExpectation.lostPolls} unless `keepLost`. In the same
   * transaction:
   *
   * - With the result `event`: receives the event and fulfils the expectation with it. If the expectation is cancelled, the
   *   event is received too, and the expectation stays cancelled. But if the inbox has an event of the transaction with another of `eventTypes`, and
   *   none with the same type, the event is not received: the recorded result is `contradiction`, with the detail also
   *   as {@link StoredExpectation.contradiction}, and the stored event fulfils the expectation if it is open.
   * - With `next: 'overdue'`, if the expectation is still `waiting`: a stored event of its transaction with one of
   *   `eventTypes` fulfils it. Without one, it becomes `overdue`, and the event is received.
   * - The next poll is scheduled only if the expectation is still `waiting` or `overdue`.
   */
  settlePoll(settlement: PollSettlement): Promise<SettledPoll>;

  /**
   * Makes polls due: the poll of selection `i` in `dueInMs[i]`, or earlier if it is already due earlier. Ignores
   * cancelled expectations and running polls. Gives an expectation whose polls were lost one more try: `lostPolls` is at
   * most 2 after it. Returns how many polls it made due.
   */
  pollNow(selections: readonly ExpectationName[], dueInMs: readonly number[]): Promise<number>;

  /** Milliseconds until the next poll is due or its lease ends: 0 or less if one is due now; `null` if there is none, or polls are paused. */
  nextPollInMs(): Promise<number | null>;

  /** Counts open expectations, each count up to the cap of `InboxStats`. */
  counts(): Promise<ExpectationCounts>;
}
