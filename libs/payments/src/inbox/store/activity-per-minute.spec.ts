import { describe, expect, it } from '@jest/globals';
import { countActivity } from './activity-per-minute.js';
import type { CountedEvent } from './activity-per-minute.js';

const MINUTE_MS = 60_000;
const NOW = 1000 * MINUTE_MS;

/** Counts the activity of 10 minutes from these slices. */
async function count(slices: readonly (readonly CountedEvent[])[], deletedMs = 0) {
  const read: number[] = [];
  const activity = await countActivity(10, NOW, deletedMs, async (before) => {
    read.push(before);
    return slices[read.length - 1] ?? [];
  });
  return { ...activity, read };
}

type Delivery = CountedEvent['deliveries'][number];

const event = (minute: number, deliveries: Delivery[] = [], seq = 1): CountedEvent => ({
  seq,
  receivedMs: minute * MINUTE_MS + 1,
  source: 'webhook',
  eventType: 'transaction.completed',
  deliveries,
});

/** A delivery that failed twice and was then done or dead, in this minute. */
const ended = (
  state: 'done' | 'dead',
  handler: string,
  minute: number,
  tookMs: number,
): Delivery => ({
  handler,
  state,
  finishedMs: minute * MINUTE_MS + 1 + tookMs,
  failedMs: [minute * MINUTE_MS, minute * MINUTE_MS + 1],
});

/** Events that were received in a minute. */
const slice = (seq: number, minute: number, length = 40_000): CountedEvent[] =>
  Array.from({ length }, () => event(minute, [], seq));

describe('countActivity', () => {
  it('IN-38 countActivity() adds the counts of one minute from several slices, and ignores minutes out of the range', async () => {
    const { minutes } = await count([
      [
        event(995, [ended('done', 'book', 995, 30)]),
        event(995, [ended('done', 'book', 995, 10), ended('dead', 'mail', 995, 7)]),
        event(999, [ended('dead', 'book', 999, 1)]),
      ],
      [event(995, [ended('done', 'book', 995, 20), ended('done', 'mail', 995, 1)]), event(988)],
    ]);
    expect(minutes.map(({ startsAt }) => startsAt.getTime() / MINUTE_MS)).toEqual([
      989, 990, 991, 992, 993, 994, 995, 996, 997, 998,
    ]);
    expect(minutes[6]).toEqual({
      startsAt: new Date(995 * MINUTE_MS),
      total: { received: 3, done: 4, failed: 10, dead: 1, p50Ms: 10, p95Ms: 30 },
      handlers: {
        book: { received: 3, done: 3, failed: 6, dead: 0, p50Ms: 20, p95Ms: 30 },
        mail: { received: 2, done: 1, failed: 4, dead: 1, p50Ms: 1, p95Ms: 1 },
      },
    });
    const others = minutes.filter((_, index) => index !== 6);
    expect(others.every(({ total, handlers }) => total.received === 0 && !handlers['book'])).toBe(
      true,
    );
  });

  it('IN-38 the activity of a range counts the deliveries of the events that were received since the range began, and their durations', async () => {
    const pending: Delivery = { handler: 'mail', state: 'pending', finishedMs: null, failedMs: [] };
    const { events, deliveries, handlers } = await count([
      [
        // The last minute is not closed yet.
        event(999, [{ handler: 'mail', state: 'running', finishedMs: null, failedMs: [] }]),
        { ...event(998), eventType: 'webhook.test' },
        { ...event(997), source: 'overdue' },
        { ...event(996, [pending]), source: 'poll' },
      ],
      [
        // Done after the range, and received before it.
        event(995, [ended('done', 'book', 999, 50)]),
        ...[1, 2, 3, 1000].map((tookMs) => event(994, [ended('done', 'book', 994, tookMs)])),
        event(993, [ended('dead', 'book', 993, 1)]),
        event(988, [ended('done', 'book', 990, 1)]),
      ],
    ]);
    expect(events).toEqual({ webhook: 7, poll: 1, test: 1, overdue: 1 });
    const book = { pending: 0, running: 0, done: 5, dead: 1, skipped: 0, failed: 12 };
    const times = { p50Ms: 3, p95Ms: 4 * MINUTE_MS + 50 };
    expect(handlers).toEqual({
      book: { ...book, ...times },
      mail: {
        ...book,
        done: 0,
        dead: 0,
        failed: 0,
        pending: 1,
        running: 1,
        p50Ms: null,
        p95Ms: null,
      },
    });
    expect(deliveries).toEqual({ ...book, pending: 1, running: 1, ...times });
  });

  it('IN-38 countActivity() reads the events of the range and at least 10,000 events; the order of these events may be wrong by a minute', async () => {
    const { read, completeFrom, minutes } = await count([
      slice(90, 988),
      slice(70, 987),
      slice(50, 986),
    ]);
    expect(read).toEqual([Number.MAX_SAFE_INTEGER, 90]);
    expect(completeFrom).toEqual(minutes[0]!.startsAt);
    const older = await count([
      slice(90, 987, 9999),
      [event(986, [ended('done', 'book', 990, 1)], 70)],
      [event(985, [ended('done', 'book', 990, 1)], 60)],
    ]);
    expect(older.read).toEqual([Number.MAX_SAFE_INTEGER, 90]);
    expect(older.minutes[1]!.total.done).toBe(1);
  });

  it('IN-38 countActivity() reads at most about 100,000 events, and its counts are complete from the minute after the oldest of these events', async () => {
    const { read, completeFrom } = await count([slice(90, 998), slice(70, 996), slice(50, 993)]);
    expect(read).toEqual([Number.MAX_SAFE_INTEGER, 90, 70]);
    expect(completeFrom).toEqual(new Date(994 * MINUTE_MS));
  });

  it('IN-38 if countActivity() has read every event, its counts are complete from the first minute, or from the minute after the newest deleted event', async () => {
    const { read, completeFrom, minutes } = await count([slice(90, 995)]);
    expect(read).toHaveLength(2);
    expect(completeFrom).toEqual(minutes[0]!.startsAt);
    expect((await count([], 995 * MINUTE_MS)).completeFrom).toEqual(new Date(996 * MINUTE_MS));
  });
});
