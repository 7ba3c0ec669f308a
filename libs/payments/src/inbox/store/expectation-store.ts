import type { Lease, SettleResult } from './store-operations.js';
import type { CappedCount, EventSource } from './stored-event.js';

/**
 * Name of the handler that polls the payments service about expected payments. A store keeps an expectation as an event
 * of the source `expectation` with one delivery to this handler, so that workers lease, free, drain and pause polls as
 * they do with all deliveries. Lists, counts and activity of events leave these events out.
 *
 * In the catalog, the patterns of this handler are the event types that fulfil an expectation. Events of these types are
 * not delivered to this handler.
 */
export const POLL_HANDLER = '@payments/poll';

/** Type of the event that a store keeps for an expectation. */
export const EXPECTATION_EVENT_TYPE = '@payments/expectation';

/** The start of the id of the event that a store keeps for an expectation, before the reference. */
export const EXPECTATION_ID = 'expectation:';

const REFERENCE = /^[^\p{Cc}]{1,200}$/u;

/** Whether a value is a valid {@link NewExpectation.reference}. */
export function isReference(value: unknown): value is string {
  return typeof value === 'string' && REFERENCE.test(value);
}

/** Id of the event that a store keeps for an expectation. */
export function expectationEventId(reference: string): string {
  return `${EXPECTATION_ID}${reference}`;
}

/** The reference of the expectation that a store keeps under the id of this event. */
export function referenceOfEvent(id: string): string {
  return id.slice(EXPECTATION_ID.length);
}

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
 * - `contradiction`: the service reported another event than the one that fulfilled the expectation. Nothing changed.
 */
export type PollResult = 'event' | 'pending' | 'unknown' | 'contradiction';

/** A payment for which the application expects an event. */
export interface NewExpectation {
  /** 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. */
  readonly company: string;
  /** The application's reference of the payment, unique within the company: 1 to 200 characters, none of them a control character. */
  readonly reference: string;
  /** The service's id of the transaction: 1 to 255 characters without control characters; `null` if it is not known yet. */
  readonly transactionId: string | null;
  /** When the expectation becomes overdue; `null`: after the last delay of the schedule. */
  readonly dueBy: Date | null;
  /** Delays of the polls after the creation, in milliseconds, ascending. At least 1, at most 100. */
  readonly schedule: readonly number[];
  /** Milliseconds until the first poll. 0 or more. */
  readonly firstPollInMs: number;
}

/** An expectation as stored. */
export interface StoredExpectation extends Omit<NewExpectation, 'firstPollInMs'> {
  readonly state: ExpectationState;
  /** When it was stored, by the store clock. */
  readonly createdAt: Date;
  /**
   * Milliseconds since it was stored, by a clock that a change of the system time does not move, if the store has one.
   * The next poll is computed from it.
   */
  readonly ageMs: number;
  /** How many polls have ended. */
  readonly polls: number;
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
    readonly by: EventSource;
    readonly eventId: string;
    readonly eventType: string;
  } | null;
  /** One line about the last poll that contradicted the event, at most 1,000 characters; `null` without one. */
  readonly contradiction: string | null;
}

/** What a poll found, and when the next one is due. */
export interface PollOutcome {
  readonly result: PollResult;
  /** See {@link StoredExpectation.lastPoll}. The store cuts it to 1,000 characters. */
  readonly detail: string | null;
  /**
   * The delay until the next poll in milliseconds; `overdue`: none, and a waiting expectation becomes overdue; `end`:
   * none, and the state stays as it is.
   */
  readonly next: number | 'overdue' | 'end';
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
  readonly overdue: CappedCount;
}

/**
 * Stores expectations. Part of {@link InboxStore}. Every operation is atomic.
 *
 * `InboxStore.receive` fulfils expectations in its own transaction: an event with `IncomingEvent.fulfils` set fulfils
 * each `waiting` or `overdue` expectation of its company whose transaction id is the event's ordering key or whose
 * reference is `IncomingEvent.reference`. The receipt of the event must be `stored` or `duplicate` or, for the source
 * `poll`, `conflict`: two polls that find the same event create different bodies. The expectation then names the stored
 * event and the source of that event. A pending poll of the expectation becomes done. A running poll continues, and
 * {@link settlePoll} makes its delivery done. If no expectation is stored, `receive` runs no additional statement.
 *
 * Pruning treats the event of an expectation as any other event: it loses its deliveries after `bodiesMs`, and the
 * expectation is deleted together with the tombstone.
 */
export interface ExpectationStore {
  /**
   * Stores an expectation in the state `waiting`, with its delivery pending and due in `firstPollInMs`. With `tx`, stores
   * it in this open transaction of the application, which must be on the database of the store. Returns `false`, and
   * changes nothing, if the company has an expectation with that reference already.
   *
   * @throws TypeError if the store cannot use `tx`. PaymentsError `inbox_full`.
   */
  expect(expectation: NewExpectation, tx?: unknown): Promise<boolean>;

  /**
   * Sets the transaction id of an expectation. Resolves with `attached`, also if it has this id already; with `conflict`
   * if it has another id, which it keeps; with `unknown` if there is no such expectation.
   */
  attach(
    company: string,
    reference: string,
    transactionId: string,
    tx?: unknown,
  ): Promise<'attached' | 'conflict' | 'unknown'>;

  /** Makes a waiting or overdue expectation `cancelled`, and its pending poll done. Returns whether it did. */
  cancel(company: string, reference: string): Promise<boolean>;

  /** The expectation with that reference. */
  find(company: string, reference: string): Promise<StoredExpectation | undefined>;

  /** Expectations by creation, newest first, `limit` at a time (1 to 1,000). */
  list(query: {
    readonly filter: ExpectationFilter;
    readonly limit: number;
    readonly after: string | null;
  }): Promise<ExpectationPage>;

  /**
   * Records a poll and settles its delivery, if the lease is valid. The next poll is scheduled only if the expectation
   * is still `waiting`; otherwise the delivery becomes done. A detail of the result `contradiction` is also stored as
   * {@link StoredExpectation.contradiction}.
   */
  settlePoll(lease: Lease, outcome: PollOutcome): Promise<SettleResult>;

  /**
   * Makes polls due: the poll of selection `i` in `dueInMs[i]`, or earlier if it is already due earlier. Ignores
   * cancelled expectations, running polls and expectations without a delivery. Returns how many polls it made due.
   */
  pollNow(
    selections: readonly { readonly company: string; readonly reference: string }[],
    dueInMs: readonly number[],
  ): Promise<number>;

  /**
   * The stored events of a transaction with one of `eventTypes`: for each type, the event that was stored under
   * {@link IncomingEvent.onceKey}. Empty if there is none.
   */
  eventsOf(
    company: string,
    transactionId: string,
    eventTypes: readonly string[],
  ): Promise<readonly { readonly id: string; readonly eventType: string }[]>;

  /** Counts open expectations, each count up to the cap of `InboxStats`. */
  counts(): Promise<ExpectationCounts>;
}
