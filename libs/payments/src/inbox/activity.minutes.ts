/** One minute of the inbox's life, all processes together. */
export interface ActivityMinute {
  /** Start of the minute, UTC, by the store's clock. */
  readonly at: Date;
  /** New events stored. */
  readonly received: number;
  /** Deliveries that became done. */
  readonly handled: number;
  /** Attempts that failed, those that left a delivery dead included. */
  readonly failed: number;
  /** Deliveries that became dead. */
  readonly dead: number;
  /**
   * Milliseconds from receipt within which half of the deliveries handled in this minute became done: the upper
   * bound of a histogram's bucket, 86,400,000 (a day) at the most, which stands for anything longer too. `null`
   * where none did.
   */
  readonly p50Ms: number | null;
  /** The same of 95 in a hundred. */
  readonly p95Ms: number | null;
}

/** What was counted in some time. Whole numbers from 0. */
export interface ActivityCounts {
  readonly received: number;
  readonly handled: number;
  readonly failed: number;
  readonly dead: number;
  /**
   * How many of `handled` took at most each of {@link HANDLED_BOUNDS_MS}, and more than the one before it. Fewer
   * in all than `handled`, where the time of some is not known.
   */
  readonly handledWithin: readonly number[];
}

/** {@link ActivityCounts} that are being made. */
export type Tally = Record<Exclude<keyof ActivityCounts, 'handledWithin'>, number> & {
  handledWithin: number[];
};

/** Counts as a store keeps them: of the minute that starts at `at`, in milliseconds since the epoch. */
export interface RecordedMinute extends ActivityCounts {
  readonly at: number;
}

/** The most minutes that are asked for, and so how long they are kept: a day. */
export const KEPT_MINUTES = 1440;

const MINUTE_MS = 60_000;

/**
 * Upper bounds, in milliseconds, of the buckets that times from receipt to done are counted in; the last one
 * counts whatever took longer, too. Stored by their place: another one would be a migration.
 */
export const HANDLED_BOUNDS_MS: readonly number[] = Object.freeze([
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 120_000, 300_000,
  600_000, 1_800_000, 3_600_000, 10_800_000, 86_400_000,
]);

/** Counts of nothing. */
export function noCounts(): Tally {
  const handledWithin = HANDLED_BOUNDS_MS.map(() => 0);
  return { received: 0, handled: 0, failed: 0, dead: 0, handledWithin };
}

/** Both together. */
export function addCounts(a: ActivityCounts, b: ActivityCounts): Tally {
  return {
    received: a.received + b.received,
    handled: a.handled + b.handled,
    failed: a.failed + b.failed,
    dead: a.dead + b.dead,
    handledWithin: HANDLED_BOUNDS_MS.map(
      (_bound, place) => (a.handledWithin[place] ?? 0) + (b.handledWithin[place] ?? 0),
    ),
  };
}

/** The bucket of a time. The last one takes whatever is longer. */
export function bucketOf(ms: number): number {
  const place = HANDLED_BOUNDS_MS.findIndex((bound) => ms <= bound);
  return place === -1 ? HANDLED_BOUNDS_MS.length - 1 : place;
}

/** Start of the minute, both in milliseconds since the epoch. */
export function minuteOf(epochMs: number): number {
  return Math.floor(epochMs / MINUTE_MS) * MINUTE_MS;
}

/** Start of the oldest of the last `minutes`. */
export function firstMinute(nowMs: number, minutes: number): number {
  return minuteOf(nowMs) - (minutes - 1) * MINUTE_MS;
}

/**
 * What a store's `activity` answers: the last `minutes` (1 to 1,440) up to `nowMs`, with zeros where nothing was
 * recorded.
 */
export function toActivity(
  recorded: Iterable<RecordedMinute>,
  nowMs: number,
  minutes: number,
): ActivityMinute[] {
  const byStart = new Map(Array.from(recorded, (minute) => [minute.at, minute]));
  const first = firstMinute(nowMs, minutes);
  return Array.from({ length: minutes }, (_, index) => {
    const at = first + index * MINUTE_MS;
    const { received, handled, failed, dead, handledWithin } = byStart.get(at) ?? noCounts();
    return {
      at: new Date(at),
      received,
      handled,
      failed,
      dead,
      p50Ms: quantileMs(handledWithin, 0.5),
      p95Ms: quantileMs(handledWithin, 0.95),
    };
  });
}

/** The bound that the share of all that was counted is within; `null` where nothing was. */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const wanted = counts.reduce((sum, count) => sum + count, 0) * share;
  if (wanted === 0) return null;
  let seen = 0;
  const place = counts.findIndex((count) => (seen += count) >= wanted);
  return HANDLED_BOUNDS_MS[place]!;
}
