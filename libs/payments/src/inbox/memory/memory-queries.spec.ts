import { describe, expect, it } from '@jest/globals';
import { MemoryActivity } from './memory-queries.js';
import type { MemoryEvent } from './memory-rows.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const START = Date.UTC(2026, 0, 1);

/** An event without deliveries, received `minutes` after the start. */
const receivedAfter = (minutes: number) =>
  ({ receivedMs: START + minutes * MINUTE_MS, deliveries: [] }) as unknown as MemoryEvent;

describe('MemoryActivity', () => {
  it.each([2 * MINUTE_MS, DAY_MS])(
    'IN-36 every minute counts once after the wall clock was set %i ms ahead and back again',
    (aheadMs) => {
      const activity = new MemoryActivity();
      const rows: MemoryEvent[] = [];
      const summarize = (minutes: number, offsetMs = 0) =>
        activity.summarize(rows, START + minutes * MINUTE_MS + 10_000 + offsetMs);
      for (let minute = 0; minute < 4; minute += 1) {
        rows.push(receivedAfter(minute));
        summarize(minute + 1);
      }
      summarize(4, aheadMs);
      for (let minute = 4; minute < 8; minute += 1) {
        rows.push(receivedAfter(minute));
        summarize(minute + 1);
      }
      const last = activity.last(4);
      expect(last.map(({ startsAt }) => (startsAt.getTime() - START) / MINUTE_MS)).toEqual([
        4, 5, 6, 7,
      ]);
      expect(last.map(({ total }) => total.received)).toEqual([1, 1, 1, 1]);
    },
  );
});
