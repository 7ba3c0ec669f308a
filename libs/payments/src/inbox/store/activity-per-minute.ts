import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import { MAX_DISORDER_MS } from './stored-event.js';
import type {
  ActivityCounts,
  ActivityMinute,
  DeliveryState,
  EventSource,
  InboxActivity,
  RangeCounts,
} from './stored-event.js';

const MINUTE_MS = 60_000;
/**
 * A minute is closed this many milliseconds after its end, because transactions that began in the minute have usually
 * committed in this time.
 */
const CLOSING_MS = 10_000;
/**
 * At least this many of the newest events are counted, because an event that is handled in one of the minutes may have
 * been received before the first of these minutes.
 */
const MIN_COUNTED = 10_000;
/** After this many events, no older events are counted. */
const MAX_COUNTED = 100_000;

/** An event, as the activity counts it. Times are in milliseconds since the epoch. */
export interface CountedEvent {
  readonly seq: number;
  readonly receivedMs: number;
  readonly source: EventSource;
  readonly eventType: string;
  readonly deliveries: readonly {
    readonly handler: string;
    readonly state: DeliveryState;
    readonly finishedMs: number | null;
    /** The times at which attempts of the delivery failed or were lost. */
    readonly failedMs: readonly number[];
  }[];
}

const minuteOf = (ms: number): number => Math.floor(ms / MINUTE_MS);

interface Tally extends Record<'received' | 'failed' | 'dead', number> {
  readonly tookMs: number[];
}

/** Counts of the deliveries to one handler, of the events that were received since the start of the first minute. */
interface RangeTally extends Record<DeliveryState | 'failed', number> {
  readonly tookMs: number[];
}

/**
 * Computes the activity of the last closed minutes, and the counts of all events that were received since the first of
 * these minutes began. Reads the newest events slice by slice, so that other operations can run between two slices.
 *
 * @param nowMs the time by the store clock
 * @param deletedMs a time: events that were received before it may have been deleted
 * @param readSlice returns the newest events whose number (`seq`) is less than `before`, the newest first
 */
export async function countActivity(
  minutes: number,
  nowMs: number,
  deletedMs: number,
  readSlice: (before: number) => Promise<readonly CountedEvent[]>,
): Promise<InboxActivity> {
  const first = minuteOf(nowMs - CLOSING_MS) - minutes;
  const tallies = Array.from({ length: minutes }, () => new Map<string, Tally>());
  /** Returns the tally of a handler in a minute. If the minute was not requested, no code reads this tally. */
  const tallyOf = (ms: number, handler: string): Tally => {
    const byHandler = tallies[minuteOf(ms) - first];
    const tally = byHandler?.get(handler) ?? { received: 0, failed: 0, dead: 0, tookMs: [] };
    byHandler?.set(handler, tally);
    return tally;
  };
  const events = { webhook: 0, poll: 0, test: 0, overdue: 0 };
  const ranges = new Map<string, RangeTally>();
  const rangeOf = (handler: string): RangeTally => {
    const none = { pending: 0, running: 0, done: 0, dead: 0, skipped: 0, failed: 0, tookMs: [] };
    const range = ranges.get(handler) ?? none;
    ranges.set(handler, range);
    return range;
  };
  let uncountedMs = deletedMs;
  let before = Number.MAX_SAFE_INTEGER;
  for (let read = 0; ;) {
    const slice = await readSlice(before);
    for (const { receivedMs, source, eventType, deliveries } of slice) {
      const isInRange = minuteOf(receivedMs) >= first;
      if (isInRange) events[eventType === TEST_EVENT_TYPE ? 'test' : source] += 1;
      tallyOf(receivedMs, '').received += 1;
      for (const { handler, state, finishedMs, failedMs } of deliveries) {
        const tookMs = state === 'done' ? Math.max(0, finishedMs! - receivedMs) : null;
        tallyOf(receivedMs, handler).received += 1;
        // A delivery may have failed in several minutes.
        for (const ms of failedMs) tallyOf(ms, handler).failed += 1;
        if (state === 'dead') tallyOf(finishedMs!, handler).dead += 1;
        if (tookMs !== null) tallyOf(finishedMs!, handler).tookMs.push(tookMs);
        if (!isInRange) continue;
        const range = rangeOf(handler);
        range[state] += 1;
        range.failed += failedMs.length;
        if (tookMs !== null) range.tookMs.push(tookMs);
      }
    }
    const oldest = slice.at(-1);
    if (oldest === undefined) break;
    read += slice.length;
    before = oldest.seq;
    if (read >= MAX_COUNTED) {
      uncountedMs = Math.max(uncountedMs, oldest.receivedMs);
      break;
    }
    if (read >= MIN_COUNTED && oldest.receivedMs < first * MINUTE_MS - MAX_DISORDER_MS) break;
  }
  return {
    minutes: tallies.map((byHandler, index) => toMinute(first + index, byHandler)),
    events,
    deliveries: rangeCountsOf([...ranges.values()]),
    handlers: Object.fromEntries(
      Array.from(ranges, ([handler, range]) => [handler, rangeCountsOf([range])]),
    ),
    completeFrom: new Date(Math.max(first, minuteOf(uncountedMs) + 1) * MINUTE_MS),
  };
}

function toMinute(minute: number, byHandler: Map<string, Tally>): ActivityMinute {
  const received = byHandler.get('')?.received ?? 0;
  byHandler.delete('');
  return {
    startsAt: new Date(minute * MINUTE_MS),
    total: { ...countsOf([...byHandler.values()]), received },
    handlers: Object.fromEntries(
      Array.from(byHandler, ([handler, tally]) => [handler, countsOf([tally])]),
    ),
  };
}

function countsOf(tallies: readonly Tally[]): ActivityCounts {
  const tookMs = tallies.flatMap((tally) => tally.tookMs);
  return {
    received: sumOf(tallies, 'received'),
    done: tookMs.length,
    failed: sumOf(tallies, 'failed'),
    dead: sumOf(tallies, 'dead'),
    ...percentilesOf(tookMs),
  };
}

function rangeCountsOf(ranges: readonly RangeTally[]): RangeCounts {
  return {
    pending: sumOf(ranges, 'pending'),
    running: sumOf(ranges, 'running'),
    done: sumOf(ranges, 'done'),
    dead: sumOf(ranges, 'dead'),
    skipped: sumOf(ranges, 'skipped'),
    failed: sumOf(ranges, 'failed'),
    ...percentilesOf(ranges.flatMap((range) => range.tookMs)),
  };
}

function sumOf<K extends string>(tallies: readonly Record<K, number>[], field: K): number {
  return tallies.reduce((sum, tally) => sum + tally[field], 0);
}

function percentilesOf(tookMs: readonly number[]): Pick<ActivityCounts, 'p50Ms' | 'p95Ms'> {
  const sorted = Float64Array.from(tookMs).toSorted();
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  return { p50Ms: nearestRank(0.5), p95Ms: nearestRank(0.95) };
}
