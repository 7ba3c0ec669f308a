import { isWhole } from '../../errors/option-checks.js';
import type { PaymentEventSource } from '../../events/payment-event.js';

/**
 * The state of one event's delivery to one handler.
 *
 * - `pending`: waits for its first attempt, for a retry, or for the end of another delivery with the same ordering key.
 * - `running`: leased to a worker, under the worker's id and a fencing token.
 * - `done`: the handler succeeded.
 * - `dead`: a dead letter, because all attempts failed, or an attempt failed with an unrecoverable error. A dead
 *   delivery is kept until an operator redrives or skips it.
 * - `skipped`: an operator decided that the delivery does not run.
 */
export type DeliveryState = 'pending' | 'running' | 'done' | 'dead' | 'skipped';

/**
 * A filter for events: the state of a delivery, or the reason why an event has no deliveries.
 *
 * - `unhandled`: no handler took the event's type.
 * - `stale`: the event was too old when it was received; see {@link StoredEvent.stale}.
 *
 * A redrive can add deliveries to an unhandled or stale event. An event with a delivery is neither unhandled nor stale.
 * Tombstones and `webhook.test` events are neither `unhandled` nor `stale`.
 */
export type EventState = DeliveryState | 'unhandled' | 'stale';

/** A finished attempt of a delivery. */
export interface DeliveryAttempt {
  /** The number of the attempt, from 1. After a redrive, attempts are numbered from 1 again. */
  readonly attempt: number;
  /** When the delivery was claimed, by the store clock. */
  readonly startedAt: Date;
  /** When the attempt ended, by the store clock. A lost attempt ends when the store frees its delivery. */
  readonly endedAt: Date;
  /**
   * - `done`: the handler succeeded.
   * - `failed`: the handler failed, or did not run because the delivery had no attempts left.
   * - `lost`: the process died, or sent no heartbeats for `leaseMs`, before the attempt had a result.
   */
  readonly outcome: 'done' | 'failed' | 'lost';
  /** One line about the failure, at most 1,000 characters; `null` unless the outcome is `failed`. */
  readonly error: string | null;
}

/** One event's delivery to one handler, as stored. */
export interface StoredDelivery {
  readonly handler: string;
  readonly state: DeliveryState;
  /**
   * Number of attempts that are counted towards the limit. An attempt is not counted if the worker released the
   * delivery, for example because the application closed. A lost attempt is counted only if an earlier attempt was lost
   * too, and no attempt between them had a result.
   */
  readonly attempts: number;
  /** One line about the last failure, `null` if there was none. */
  readonly lastError: string | null;
  /**
   * The stack frames of {@link lastError} that are in the application's own files, one per line and the innermost
   * first, at most 1,000 characters. Paths are relative to the working directory of the process. `null` if there are no
   * such frames, and in a list of events.
   */
  readonly frames: string | null;
  /**
   * When a pending delivery is due; `null` in other states. The due time is in the past if the delivery waits for
   * another delivery with the same ordering key.
   */
  readonly dueAt: Date | null;
  /** When the delivery became done, dead or skipped; `null` before. */
  readonly finishedAt: Date | null;
  /**
   * The attempts that have ended, the oldest first, at most the last 20. A redrive does not delete these attempts.
   * Attempts that are not counted because the worker released the delivery are not included. Empty in a list of events.
   */
  readonly history: readonly DeliveryAttempt[];
}

/** How an event was received. */
export type EventSource = PaymentEventSource;

/**
 * The result of the option `summary`. Lists show the summary next to the event's transaction, and searches find the
 * event by its reference. Fields that are missing or have another type are not stored.
 */
export interface EventSummary {
  /** The application's reference of the payment, for example an order number. Cut to 200 characters. */
  readonly reference?: string | null;
  /** The amount in units of the currency, for example `350` or `'350.00'`. Cut to 40 characters. */
  readonly amount?: string | number | null;
  /** The currency, for example `KES`. Cut to 10 characters. */
  readonly currency?: string | null;
}

/** An {@link EventSummary} as stored. A field that is not known is `null`. */
export interface StoredSummary {
  readonly reference: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
}

export const NO_SUMMARY: StoredSummary = Object.freeze({
  reference: null,
  amount: null,
  currency: null,
});

/**
 * A verified event, as a store receives it. The field `company` is the id of the company whose secret signed the
 * webhook request: 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. The fields `id` and `eventType` have 1 to 255
 * characters without control characters. A stale event has no handlers.
 */
export interface IncomingEvent extends Pick<
  StoredEvent,
  'company' | 'id' | 'eventType' | 'occurredAt' | 'headers' | 'stale' | 'source'
> {
  /**
   * Two deliveries of one company, handler and ordering key never run at the same time. If the key is `null`, the
   * deliveries of the event do not wait for other deliveries. The key is the event's `data.transactionId`, of any
   * length and content.
   */
  readonly orderingKey: string | null;
  /** The body, byte for byte as it was signed or, with a `bodyCodec`, as the codec encoded it. */
  readonly raw: Buffer;
  /**
   * Whether the event's type is handled once per transaction. Another event of the same company, type and
   * {@link orderingKey} is then a duplicate, even if its id differs. A stale event counts as the event of its
   * transaction only after a redrive has added its first delivery. Without an ordering key, this field has no effect.
   */
  readonly oncePerTransaction: boolean;
  /** Names of the handlers to deliver to, each once. Without handlers, the event is stored as unhandled or stale. */
  readonly handlers: readonly string[];
  /** The {@link HandlerCatalog.version} from which {@link handlers} was computed. */
  readonly catalogVersion: number;
  /**
   * A worker, and the handlers among {@link handlers} for which the worker has reserved slots. The store may lease the
   * deliveries to these handlers to this worker at once. `null` if no worker has reserved slots.
   */
  readonly assign: { readonly workerId: string; readonly handlers: readonly string[] } | null;
  /**
   * The event's `data.externalReference`, if it is a string that {@link NewExpectation.reference} allows; otherwise
   * `null`.
   */
  readonly reference: string | null;
  readonly summary: StoredSummary | null;
  /** Whether the event fulfils expectations of its transaction and reference; see {@link ExpectationStore}. */
  readonly fulfils: boolean;
}

/** The result of {@link InboxStore.receive} for one event. */
export interface StoreReceipt {
  /**
   * - `stored`: the event is new.
   * - `duplicate`: the event is known. Nothing was stored, except that an event with another id is added once to
   *   {@link StoredEvent.repeats} of the first event.
   * - `conflict`: the stored event with this id has a different body ({@link IncomingEvent.raw}). The stored event does
   *   not change. With a `bodyCodec`, the receiver decodes and compares the bodies itself.
   * - `outdated`: the event is new, but {@link IncomingEvent.catalogVersion} is not the current version. Nothing was
   *   stored: call {@link InboxStore.catalog} and receive the event again.
   */
  readonly outcome: 'stored' | 'duplicate' | 'conflict' | 'outdated';
  /** Id of the stored event. For a duplicate, the id of the event that was stored first. */
  readonly id: string;
  /**
   * Deliveries of the new event that are now leased to the worker in {@link IncomingEvent.assign}, without the body of
   * the event, which the caller has.
   */
  readonly claimed: readonly Omit<ClaimedDelivery, 'raw'>[];
  /** Whether the new event has pending deliveries, which a worker has to claim. */
  readonly pending: boolean;
  /** The expectations that the event fulfilled; see {@link ExpectationStore}. */
  readonly fulfilled: readonly FulfilledExpectation[];
}

export interface FulfilledExpectation {
  readonly reference: string;
  readonly transactionId: string | null;
  /** How the stored event was received. */
  readonly by: EventSource;
}

/** The right to run and settle one delivery. */
export interface Lease {
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
  readonly handler: string;
  /** Fencing token: increases with every claim of the delivery, and when the delivery is freed. */
  readonly token: number;
  /**
   * The number of the event in the store, which numbers the events in the order of receipt. Pass a lease to the store
   * unchanged.
   */
  readonly seq: number;
}

/** Facts of an event for the spans of its attempts. */
export interface TracedEvent {
  /** The stored header `traceparent`; `null` if the event has none. */
  readonly traceparent: string | null;
  readonly eventType: string | null;
}

/** A delivery that was claimed, or assigned on receipt. */
export interface ClaimedDelivery extends Lease, Pick<StoredEvent, 'receivedAt' | 'source'> {
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** Milliseconds from {@link receivedAt} to the claim, both by the store clock. */
  readonly ageMs: number;
  /** The stored body. */
  readonly raw: Buffer;
  /**
   * How many attempts in a row were lost because their process died or sent no heartbeats for `leaseMs`. A delivery
   * with at least one such attempt is a suspect, because it may have caused the death of the process.
   */
  readonly crashes: number;
  /** Without this field, the span of the attempt has neither the event type nor a link to the receipt of the event. */
  readonly traced?: TracedEvent;
}

/** An event as stored. */
export interface StoredEvent {
  readonly company: string;
  /**
   * The service's id of the event, or the id of an event of the module: `poll:…` and `overdue:…`. If an id of the
   * service begins with `poll:`, `overdue:` or `service:`, the module stores it with the prefix `service:`.
   */
  readonly id: string;
  /** How the first copy of the event was received. */
  readonly source: PaymentEventSource;
  readonly eventType: string;
  /** The event's own time (its `timestamp`). */
  readonly occurredAt: Date;
  readonly orderingKey: string | null;
  /** The reference of the payment; see {@link EventSummary}. `null` if it is not known, and in a tombstone. */
  readonly reference: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
  /** When the first copy of the event was stored, by the store clock. */
  readonly receivedAt: Date;
  /** Whether the event is a tombstone: its body, its deliveries and its summary were deleted. */
  readonly pruned: boolean;
  /** The body as it was received; `null` in a tombstone, and in a list of events. */
  readonly raw: Buffer | null;
  /**
   * One line about why `bodyCodec` could not decode the body. {@link raw} is then `null`, but the body is still stored.
   * Only `PaymentInbox.get()` sets this field.
   */
  readonly bodyError?: string;
  /**
   * The stored headers of the webhook request, by lower-case name: `content-type`, `content-length`, `user-agent`,
   * `x-webhook-event`, `x-request-id` and `traceparent`, if the first copy had them, each at most 256 characters. The
   * signature and credentials are never stored. The signature covers only the body, so no header is verified. Empty in
   * a list, and for a tombstone.
   */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Whether the event was already older than `webhook.maxAgeMs` when the module received it. The event could have
   * been a copy of an event whose id was already deleted, so no handler ran. After a redrive that added a delivery,
   * this field is `false`.
   */
  readonly stale: boolean;
  /**
   * Other events of the same company, type and transaction that were received later and not handled, because the type
   * is in `oncePerTransaction`. At most the last 20, the oldest first. Empty in a list.
   */
  readonly repeats: readonly { readonly id: string; readonly receivedAt: Date }[];
  /** One delivery per handler, sorted by handler name. Empty for an unhandled or stale event, and for a tombstone. */
  readonly deliveries: readonly StoredDelivery[];
}

export const HISTORY_LENGTH = 20;
/** Maximum number of events that {@link InboxStore.eventsOf} returns. */
export const MAX_OF_PAYMENT = 100;
/** Maximum number of {@link StoredEvent.repeats}. */
export const MAX_REPEATS = 20;

const ERROR_LENGTH = 1000;

/** One attempt as a database stores it, in a JSON array. `startedMs` counts from the epoch. */
export type HistoryEntry = readonly [
  attempt: number,
  startedMs: number,
  tookMs: number,
  outcome: keyof typeof OUTCOMES,
  error?: string,
];

const OUTCOMES = { d: 'done', f: 'failed', l: 'lost' } as const;

export function toHistory(entries: readonly HistoryEntry[]): DeliveryAttempt[] {
  return entries.map(([attempt, startedMs, tookMs, outcome, error]) => ({
    attempt,
    startedAt: new Date(startedMs),
    endedAt: new Date(startedMs + Math.max(0, tookMs)),
    outcome: OUTCOMES[outcome],
    error: error ?? null,
  }));
}

/** Returns an error cut to 1,000 characters, so that the size of a history is bounded. */
export function boundedError(error: string): string {
  return error.length > ERROR_LENGTH ? `${error.slice(0, ERROR_LENGTH - 1)}…` : error;
}

/**
 * Returns a text with `A` to `Z` in lower case. Searches compare references in this form. The SQL function `lower()`
 * changes the same letters in SQLite, and in PostgreSQL with the collation "C".
 */
export function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** A search by amount compares only about this many of the newest events. */
export const AMOUNTS_READ = 100_000;

/** Returns an amount without zeros at the end of its fraction, so that equal amounts are equal texts. */
export function normalAmount(amount: string): string {
  return amount.includes('.') ? amount.replace(/\.?0+$/, '') : amount;
}

const AMOUNT = /^([a-z]{3})?\s*(\d{1,3}(?:,\d{3})+|\d{1,30})(\.\d{1,30})?\s*([a-z]{3})?$/i;

/**
 * Returns the amount and the currency in the text of a search, such as `350`, `350.00`, `KES 1,250.00` or `350 kes`;
 * `null` if the text is not an amount. The amount is as {@link normalAmount} returns it. `currencies` contains the
 * currency in upper case and in lower case; it is empty without a currency.
 */
export function amountIn(search: string): { amount: string; currencies: string[] } | null {
  const [, before, digits, fraction = '', after] = AMOUNT.exec(search.trim()) ?? [];
  if (digits === undefined || (before !== undefined && after !== undefined)) return null;
  const currency = before ?? after;
  return {
    amount: normalAmount(digits.replaceAll(',', '') + fraction),
    currencies: currency === undefined ? [] : [currency.toUpperCase(), currency.toLowerCase()],
  };
}

/** Selects events: all given fields must match. Times are times of receipt. */
export interface EventFilter {
  readonly company?: string;
  /** Only events with these ids, at most 1,000. */
  readonly ids?: readonly string[];
  readonly eventType?: string;
  /** Only events that were received from this source. */
  readonly source?: PaymentEventSource;
  /**
   * Only events that were received at this time or later. In a database, the list may leave out an event if the clock
   * was set back by more than a minute, and therefore reached this time, or {@link to}, twice.
   */
  readonly from?: Date;
  /** Only events that were received before this time. */
  readonly to?: Date;
  /** Only events with a delivery to this handler. */
  readonly handler?: string;
  /**
   * Only events with a delivery in this state. If `handler` is also set, this delivery must be to that handler. With
   * `unhandled` or `stale`, only events that have no deliveries for this reason.
   */
  readonly state?: EventState;
  /**
   * Only events whose id or reference begins with this text, or whose transaction id (the ordering key) is this text.
   * For a reference, `A` to `Z` match in either case. If the text is an amount, such as `350`, `350.00` or `KES 350`,
   * also events with this amount and currency among about the newest 100,000 events (in the memory inbox, among all
   * events).
   */
  readonly search?: string;
}

/**
 * A page of a list. If few events match the filter, the page may have fewer events than `limit`, or none, although
 * `next` is not `null`.
 */
export interface EventPage {
  /**
   * The events without their bodies, headers, repeats and histories: `raw` is `null`, and the other three fields are
   * empty.
   */
  readonly events: readonly StoredEvent[];
  /** The value to pass as `after` to get the next page, even if this page is empty; `null` on the last page. */
  readonly next: string | null;
}

/** @throws TypeError if `after` is not a cursor that this store returned as `next`. */
export function parseCursor(after: unknown, pattern: RegExp): RegExpExecArray {
  const parts = typeof after === 'string' ? pattern.exec(after) : null;
  if (parts !== null) return parts;
  throw new TypeError(
    '"after" must be the "next" of the previous page from the same inbox, or null for the first page.',
  );
}

/** Converts the `next` of a page of events to the number of the last event of this page. */
export function parseSeq(next: string): number {
  return Number(parseCursor(next, /^\d{1,16}$/)[0]);
}

/** @throws TypeError if `from` or `to` is not a valid `Date`. */
export function assertTimes({ from, to }: { readonly from?: Date; readonly to?: Date }): void {
  if (from !== undefined) assertDate('from', from);
  if (to !== undefined) assertDate('to', to);
}

export function assertDate(name: string, value: unknown): void {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return;
  throw new TypeError(
    `"${name}" must be a valid Date; for a text, use new Date(text) with a text such as 2026-01-31T12:00:00Z.`,
  );
}

/** @throws TypeError unless the value is a whole number within the bounds. `unit` is what the number counts. */
export function assertWhole(
  name: string,
  value: unknown,
  { min = 1, max, unit }: { readonly min?: number; readonly max: number; readonly unit: string },
): void {
  if (isWhole(value, min, max)) return;
  const bounds = `${min.toLocaleString('en')} to ${max.toLocaleString('en')}`;
  throw new TypeError(`"${name}" must be a whole number of ${unit} from ${bounds}.`);
}

/** @throws TypeError unless the value is a text of 1 to `max` characters. */
export function assertText(name: string, value: unknown, max: number): void {
  if (typeof value === 'string' && value !== '' && value.length <= max) return;
  throw new TypeError(`"${name}" must be a text of 1 to ${max} characters.`);
}

/** Deliveries of one event to redrive or skip. */
export interface DeliverySelection {
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
  readonly handlers: readonly string[];
}

/** Maximum number of rows that one call of `list()` of a database store compares with the filter. */
export const MAX_READ = 20_000;

/**
 * An event may have an earlier time of receipt than an event with a lower number, because transactions overlap and
 * clocks are set back. A list that is filtered by time finds such an event if its time is at most this many
 * milliseconds earlier.
 */
export const MAX_DISORDER_MS = 60_000;

/** Counts are exact up to this number. */
export const COUNT_CAP = 10_000;

/** A number of rows, counted up to 10,000. */
export interface CappedCount {
  /** The count, from 0 to 10,000. */
  readonly count: number;
  /** Whether there are more rows than {@link count}. Pages then show "10,000+". */
  readonly more: boolean;
}

/** Limits a number of rows to {@link COUNT_CAP}. A query may stop after one row more: more rows give the same result. */
export function capped(count: number): CappedCount {
  return { count: Math.min(count, COUNT_CAP), more: count > COUNT_CAP };
}

/** Counts of the stored events and deliveries, for a dashboard or a metrics endpoint. */
export interface InboxStats {
  /**
   * Number of unfinished deliveries by handler and state. A combination of handler and state without deliveries has no
   * entry.
   */
  readonly deliveries: readonly ({
    readonly handler: string;
    readonly state: 'pending' | 'running' | 'dead';
  } & CappedCount)[];
  /**
   * Number of stored events that have no delivery because no handler takes their type. `webhook.test` events do not
   * count.
   */
  readonly unhandled: CappedCount;
  /** Number of stored events that have no delivery because the events were too old when they were received. */
  readonly stale: CappedCount;
  /** Milliseconds since the receipt of the oldest delivery that is pending or running; `null` if there is none. */
  readonly oldestPendingMs: number | null;
  /** The pauses, sorted by handler. */
  readonly paused: readonly HandlerPause[];
}

/** Maximum length of the name of an operator, in characters. */
export const MAX_WHO = 200;
/** Maximum length of a reason or a note of an operator, in characters. */
export const MAX_NOTE = 500;

/** Why and for how long `PaymentInbox.pause()` pauses a handler. All fields are optional. */
export interface PauseFacts {
  /** Who paused the handler, 1 to 200 characters. */
  readonly who?: string | undefined;
  /** The reason, 1 to 500 characters. */
  readonly reason?: string | undefined;
  /** When the pause ends by itself; must be in the future. Default: the pause lasts until `PaymentInbox.resume()`. */
  readonly until?: Date | undefined;
}

/** A pause of a handler. */
export interface HandlerPause {
  /** Name of the handler, or `*` if all handlers are paused. */
  readonly handler: string;
  /** When the handler was last paused, by the store clock. */
  readonly pausedAt: Date;
  /** Who paused the handler; `null` if this was not given. */
  readonly who: string | null;
  /** Why; `null` if this was not given. */
  readonly reason: string | null;
  /**
   * When the pause ends by itself. The first heartbeat of any process after this time ends the pause. `null`: the pause
   * lasts until `PaymentInbox.resume()`.
   */
  readonly until: Date | null;
}

/** A delivery that is pending, running or dead and has at least one attempt that failed or was lost. */
export interface FailedDelivery {
  readonly handler: string;
  /** The error of the last attempt that failed or was lost, exactly as stored. */
  readonly error: string;
  /** `retrying` means pending or running. */
  readonly state: 'dead' | 'retrying';
  /** The end of the last attempt that failed or was lost. */
  readonly failedAt: Date;
  /** Id of the company of the event. */
  readonly company: string;
  readonly eventId: string;
}

/** Maximum number of failed deliveries that {@link InboxStore.failures} reads. */
export const MAX_FAILED = 10_000;

/** The activity of the inbox in the last closed minutes, in all processes together. */
export interface InboxActivity {
  /** The minutes, the oldest first. A minute without activity has zeros. */
  readonly minutes: readonly ActivityMinute[];
  /**
   * The number of new events since the first of {@link minutes} began, until now, by how they were received. `test`
   * counts the events of the type `webhook.test`, and `webhook` counts all other events of webhook requests. `overdue`
   * counts events that the module itself created.
   */
  readonly events: Readonly<Record<'webhook' | 'poll' | 'test' | 'overdue', number>>;
  /** The deliveries of the events that {@link events} counts, to all handlers together. */
  readonly deliveries: RangeCounts;
  /**
   * The deliveries of the events that {@link events} counts, by handler name. Handlers without a delivery are absent.
   */
  readonly handlers: Readonly<Record<string, RangeCounts>>;
  /**
   * Start of the minute from which on {@link minutes} counts every new event and all attempts for these events. This is
   * the start of the first minute, with two exceptions: the inbox has received more than 100,000 events since the first
   * minute began, or it may have deleted events that it received since the first minute began. In the minutes before
   * `completeFrom`, only events among the 100,000 newest are counted. Attempts for events that were received before the
   * first minute are counted if the event is among the 10,000 newest.
   */
  readonly completeFrom: Date;
}

/**
 * The deliveries of the events that were received in a time range: how many of these deliveries are in each state now,
 * even if a delivery became done or dead after the time range.
 */
export interface RangeCounts extends Readonly<Record<DeliveryState, number>> {
  /** Number of failed or lost attempts of these deliveries until now. */
  readonly failed: number;
  /**
   * Median of the times from the receipt of an event until its delivery was done, in milliseconds (nearest rank), of
   * the deliveries that `done` counts; `null` if `done` is 0.
   */
  readonly p50Ms: number | null;
  /** 95th percentile of these times, in milliseconds; `null` if `done` is 0. */
  readonly p95Ms: number | null;
}

/** The activity of the inbox, or of one handler, in one minute. */
export interface ActivityCounts {
  /** For the inbox: the number of new events. For a handler: the number of new events with a delivery to it. */
  readonly received: number;
  /** Number of deliveries that became done. */
  readonly done: number;
  /** Number of attempts that ended as `failed` or `lost`, including attempts after which the delivery was dead. */
  readonly failed: number;
  /** Number of deliveries that became dead. */
  readonly dead: number;
  /**
   * Median of the times from the receipt of an event until its delivery was done, in milliseconds (nearest rank), of
   * the deliveries that `done` counts; `null` if `done` is 0.
   */
  readonly p50Ms: number | null;
  /** 95th percentile of these times, in milliseconds; `null` if `done` is 0. */
  readonly p95Ms: number | null;
}

/** The activity of one closed minute. A minute is closed 10 s after its end. */
export interface ActivityMinute {
  /** Start of the minute, UTC, by the store clock. */
  readonly startsAt: Date;
  /** The activity of all handlers together. */
  readonly total: ActivityCounts;
  /** The activity by handler name. Handlers without activity in this minute are absent. */
  readonly handlers: Readonly<Record<string, ActivityCounts>>;
}
