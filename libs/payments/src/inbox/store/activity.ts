import type { ActivityCounts, ActivityMinute, InboxActivity } from './stored-event.js';

const MINUTE_MS = 60_000;
/** A minute is closed this long after its end, when transactions that began in it have usually committed. */
const CLOSING_MS = 10_000;
/** At least this many of the newest events are counted. */
export const COUNTED_EVENTS = 100_000;

/** The counts that a slice of events adds to one minute. */
export interface ActivityPart {
  /** In minutes since the epoch. */
  readonly minute: number;
  /** The handler of the counted deliveries. Empty if the part counts the received events. */
  readonly handler: string;
  readonly received: number;
  readonly failed: number;
  readonly dead: number;
  /** The time from receipt to done of each delivery that became done, in milliseconds. */
  readonly tookMs: readonly number[];
}

/** The activity of some events that follow each other in the order of receipt. */
export interface ActivitySlice {
  readonly parts: readonly ActivityPart[];
  readonly events: number;
  /** The oldest of these events; `null` if there are none. */
  readonly oldest: { readonly seq: number; readonly receivedMs: number } | null;
}

export const minuteOf = (ms: number): number => Math.floor(ms / MINUTE_MS);

interface Tally extends Record<'received' | 'failed' | 'dead', number> {
  readonly tookMs: number[];
}

/**
 * Computes the activity of the last closed minutes from the newest events, slice by slice, so that other operations can
 * run between two slices.
 *
 * @param nowMs the time by the store clock
 * @param deletedMs the time up to which received events may have been deleted
 * @param readSlice returns the activity, from the minute `fromMinute` on, of a slice of events: the newest events that
 *   were received before the event with the number `before`
 */
export async function countActivity(
  minutes: number,
  nowMs: number,
  deletedMs: number,
  readSlice: (before: number, fromMinute: number) => Promise<ActivitySlice>,
): Promise<InboxActivity> {
  const first = minuteOf(nowMs - CLOSING_MS) - minutes;
  const tallies = Array.from({ length: minutes }, () => new Map<string, Tally>());
  let uncountedMs = deletedMs;
  let before = Number.MAX_SAFE_INTEGER;
  for (let events = 0; events < COUNTED_EVENTS;) {
    const slice = await readSlice(before, first);
    for (const part of slice.parts) add(tallies[part.minute - first], part);
    if (slice.oldest === null) break;
    events += slice.events;
    before = slice.oldest.seq;
    if (events >= COUNTED_EVENTS) uncountedMs = Math.max(uncountedMs, slice.oldest.receivedMs);
  }
  return {
    minutes: tallies.map((byHandler, index) => toMinute(first + index, byHandler)),
    completeFrom: new Date(Math.max(first, minuteOf(uncountedMs) + 1) * MINUTE_MS),
  };
}

/** @param byHandler the counts of the minute; `undefined` if the minute is not requested */
function add(byHandler: Map<string, Tally> | undefined, part: ActivityPart): void {
  if (byHandler === undefined) return;
  const tally = byHandler.get(part.handler) ?? { received: 0, failed: 0, dead: 0, tookMs: [] };
  byHandler.set(part.handler, tally);
  tally.received += part.received;
  tally.failed += part.failed;
  tally.dead += part.dead;
  for (const ms of part.tookMs) tally.tookMs.push(ms);
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
  const sorted = Float64Array.from(tallies.flatMap(({ tookMs }) => tookMs)).toSorted();
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  const sum = (field: 'received' | 'failed' | 'dead') =>
    tallies.reduce((total, tally) => total + tally[field], 0);
  return {
    received: sum('received'),
    done: sorted.length,
    failed: sum('failed'),
    dead: sum('dead'),
    p50Ms: nearestRank(0.5),
    p95Ms: nearestRank(0.95),
  };
}
