/**
 * State of one event's delivery to one handler.
 *
 * - `pending`: waits for its first attempt or, after a failure, for the next.
 * - `running`: leased to a worker, under its id and a fencing token.
 * - `done`: the handler succeeded.
 * - `dead`: out of attempts, or given up as unrecoverable: a dead letter, kept until it is redriven or skipped.
 * - `skipped`: an operator decided that it is not to run.
 */
export type DeliveryState = 'pending' | 'running' | 'done' | 'dead' | 'skipped';

/**
 * What to filter events by: the state of a delivery, or why the event has none.
 *
 * - `unhandled`: no handler took its type.
 * - `stale`: it was too old when it was received; see {@link StoredEvent.stale}.
 *
 * A redrive gives such an event deliveries, and it leaves the state. Tombstones and `webhook.test` events are in
 * neither.
 */
export type EventState = DeliveryState | 'unhandled' | 'stale';

/** One attempt of a delivery, as it ended. */
export interface DeliveryAttempt {
  /** From 1; a redrive begins to count again. */
  readonly attempt: number;
  /** When it was claimed, by the store's clock. */
  readonly startedAt: Date;
  /** By the store's clock. Of a lost one: when it was freed. */
  readonly endedAt: Date;
  /**
   * - `done`: the handler succeeded.
   * - `failed`: the handler failed, or was not run any more because its attempts were used up.
   * - `lost`: its process died or was cut off before the attempt had a result.
   */
  readonly outcome: 'done' | 'failed' | 'lost';
  /** One line about the failure, at most 1,000 characters; `null` but for `failed`. */
  readonly error: string | null;
}

/** One event's delivery to one handler, as stored. */
export interface StoredDelivery {
  readonly handler: string;
  readonly state: DeliveryState;
  /** Attempts that were started and charged so far. An attempt that was released or lost without a charge is not. */
  readonly attempts: number;
  /** One line about the last failure, `null` if there was none. */
  readonly lastError: string | null;
  /** When a pending one is due; `null` in the other states. Past for one that waits for its ordering key. */
  readonly dueAt: Date | null;
  /** When it became done, dead or skipped; `null` before. */
  readonly finishedAt: Date | null;
  /**
   * The attempts that have ended, the oldest first, at most the last 20; a redrive keeps them. What was given
   * back without being charged is not among them. Empty in a list.
   */
  readonly history: readonly DeliveryAttempt[];
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
  /** The body as received, or `null` if it was pruned and only the tombstone is left. */
  readonly raw: Buffer | null;
  /**
   * One line about why `bodyCodec` could not decode the body, which is still stored; {@link raw} is `null`. Only
   * `PaymentInbox.get()` sets it.
   */
  readonly bodyError?: string;
  /**
   * What was kept of the request's headers, by lower-case name: `content-type`, `content-length`, `user-agent`,
   * `x-webhook-event`, `x-request-id` and `traceparent`, if the first copy had them, each at most 256 characters. Never
   * the signature or a credential. The signature covers only the body. Empty in a list, and of a tombstone.
   */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Whether its own time was more than `webhook.maxAgeMs` ago when it was received: it could have been a copy of an
   * event that is no longer remembered, so no handler ran for it. It stays true after a redrive.
   */
  readonly stale: boolean;
  /**
   * Other events of the same company, type and transaction that were received after this one and not handled,
   * because the type is in `oncePerTransaction`: the oldest first, the last 20 at most. Empty in a list.
   */
  readonly repeats: readonly { readonly id: string; readonly receivedAt: Date }[];
  /** One per handler, by handler name; empty for an unhandled event and for a tombstone. */
  readonly deliveries: readonly StoredDelivery[];
}

/** How many attempts a history holds. */
export const HISTORY_LENGTH = 20;

const ERROR_LENGTH = 1000;

/**
 * One attempt as a database stores it, in a JSON array: its number, when it started in milliseconds since the epoch, how
 * many milliseconds it took, how it ended, and the error of one that failed.
 */
export type HistoryEntry = readonly [
  attempt: number,
  startedMs: number,
  tookMs: number,
  outcome: keyof typeof OUTCOMES,
  error?: string,
];

const OUTCOMES = { d: 'done', f: 'failed', l: 'lost' } as const;

/** A history as the contract has it, from what a database stores. */
export function toHistory(entries: readonly HistoryEntry[]): DeliveryAttempt[] {
  return entries.map(([attempt, startedMs, tookMs, outcome, error]) => ({
    attempt,
    startedAt: new Date(startedMs),
    endedAt: new Date(startedMs + Math.max(0, tookMs)),
    outcome: OUTCOMES[outcome],
    error: error ?? null,
  }));
}

/** An error cut to 1,000 characters, so that a history of 20 attempts is bounded too. */
export function boundedError(error: string): string {
  return error.length > ERROR_LENGTH ? `${error.slice(0, ERROR_LENGTH - 1)}…` : error;
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
  /** With a delivery in this state (to that handler, if one is given), or without deliveries for this reason. */
  readonly state?: EventState;
  /** The id, ordering key or event type contains this text. */
  readonly search?: string;
}

/** A page of a list. */
export interface EventPage {
  /** Without their bodies, headers and histories: `raw` is `null`, the others are empty. */
  readonly events: readonly StoredEvent[];
  /** `after` of the query for the next page; `null` if this was the last. */
  readonly next: string | null;
}

/** One event whose deliveries are to run again, or not at all. */
export interface DeliverySelection {
  readonly company: string;
  readonly id: string;
  /** Handlers concerned. {@link InboxStore.redrive} adds a delivery if the event has none to one of them. */
  readonly handlers: readonly string[];
}

/** Counts are exact up to this number. */
export const COUNT_CAP = 10_000;

/** A number of rows, counted up to {@link COUNT_CAP}. */
export interface CappedCount {
  /** 0 to 10,000. */
  readonly count: number;
  /** Whether there are more than {@link count}: "10,000+". */
  readonly more: boolean;
}

/** Counts for a dashboard or a scraper. */
export interface InboxStats {
  /** Unfinished deliveries by handler and state; pairs without any are absent. */
  readonly deliveries: readonly ({
    readonly handler: string;
    readonly state: 'pending' | 'running' | 'dead';
  } & CappedCount)[];
  /** Stored events without a delivery, because no handler takes their type; `webhook.test` needs none. */
  readonly unhandled: CappedCount;
  /** Stored events without a delivery, because they were too old when they were received. */
  readonly stale: CappedCount;
  /** Milliseconds since the oldest delivery that is pending or running was received; `null` without any. */
  readonly oldestPendingMs: number | null;
  /** What is paused: handler names, and `*` for all. */
  readonly paused: readonly string[];
}

/** What the inbox, or one handler, did in one minute. */
export interface ActivityCounts {
  /** Of the inbox: new events stored. Of a handler: of these, those with a delivery to it. */
  readonly received: number;
  /** Deliveries that became done. */
  readonly done: number;
  /** Attempts that ended as `failed` or `lost`, including those that left a delivery dead. */
  readonly failed: number;
  /** Deliveries that became dead. */
  readonly dead: number;
  /** Median of the milliseconds from receipt to done of the deliveries in `done` (nearest rank); `null` without any. */
  readonly p50Ms: number | null;
  /** 95th percentile of the same. */
  readonly p95Ms: number | null;
}

/** One closed minute of the inbox, all processes together. */
export interface ActivityMinute {
  /** Start of the minute, UTC, by the store's clock. */
  readonly startsAt: Date;
  /** All handlers together. */
  readonly total: ActivityCounts;
  /** By handler name; handlers without activity in that minute are absent. */
  readonly handlers: Readonly<Record<string, ActivityCounts>>;
}
