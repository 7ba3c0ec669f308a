import { describe, expect, it } from '@jest/globals';
import { countActivity } from './activity.js';
import type { ActivityPart, ActivitySlice } from './activity.js';

const MINUTE_MS = 60_000;
const NOW = 1000 * MINUTE_MS;

/** Counts the activity of 10 minutes from these slices. */
async function count(slices: readonly ActivitySlice[], deletedMs = 0) {
  const read: [before: number, fromMinute: number][] = [];
  const activity = await countActivity(10, NOW, deletedMs, async (...request) => {
    read.push(request);
    return slices[read.length - 1] ?? { parts: [], events: 0, oldest: null };
  });
  return { ...activity, read };
}

const part = (minute: number, handler: string, tookMs: number[] = []): ActivityPart => ({
  minute,
  handler,
  received: 1,
  failed: 2,
  dead: 3,
  tookMs,
});
const slice = (seq: number, minute: number, parts: ActivityPart[] = []): ActivitySlice => ({
  parts,
  events: 40_000,
  oldest: { seq, receivedMs: minute * MINUTE_MS + 1 },
});

describe('countActivity', () => {
  it('IN-38 countActivity() adds the counts of one minute from several slices, and ignores minutes out of the range', async () => {
    const { minutes } = await count([
      slice(9, 990, [part(995, ''), part(995, 'book', [30, 10]), part(999, 'book')]),
      slice(8, 990, [
        part(995, ''),
        part(995, 'book', [20]),
        part(995, 'mail', [1]),
        part(988, ''),
      ]),
    ]);
    expect(minutes.map(({ startsAt }) => startsAt.getTime() / MINUTE_MS)).toEqual([
      989, 990, 991, 992, 993, 994, 995, 996, 997, 998,
    ]);
    expect(minutes[6]).toEqual({
      startsAt: new Date(995 * MINUTE_MS),
      total: { received: 2, done: 4, failed: 6, dead: 9, p50Ms: 10, p95Ms: 30 },
      handlers: {
        book: { received: 2, done: 3, failed: 4, dead: 6, p50Ms: 20, p95Ms: 30 },
        mail: { received: 1, done: 1, failed: 2, dead: 3, p50Ms: 1, p95Ms: 1 },
      },
    });
    const others = minutes.filter((_, index) => index !== 6);
    expect(others.every(({ total, handlers }) => total.received === 0 && !handlers['book'])).toBe(
      true,
    );
  });

  it('IN-38 countActivity() reads at least 100,000 events, and its counts are complete from the minute after the oldest of these events', async () => {
    const { read, completeFrom } = await count([slice(90, 998), slice(70, 996), slice(50, 993)]);
    expect(read).toEqual([
      [Number.MAX_SAFE_INTEGER, 989],
      [90, 989],
      [70, 989],
    ]);
    expect(completeFrom).toEqual(new Date(994 * MINUTE_MS));
  });

  it('IN-38 if countActivity() has read every event, its counts are complete from the first minute, or from the minute after the newest deleted event', async () => {
    const { read, completeFrom, minutes } = await count([slice(90, 995)]);
    expect(read).toHaveLength(2);
    expect(completeFrom).toEqual(minutes[0]!.startsAt);
    expect((await count([], 995 * MINUTE_MS)).completeFrom).toEqual(new Date(996 * MINUTE_MS));
  });
});
