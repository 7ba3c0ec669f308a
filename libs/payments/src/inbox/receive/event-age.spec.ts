import { describe, expect, it } from '@jest/globals';
import { isStale, staleWarning } from './event-receiver.js';

const DAY = 86_400_000;

describe('isStale', () => {
  it('SE-09 an event is stale if its age exceeds the limit', () => {
    const event = (ms: number) => ({ eventType: 't', timestamp: new Date(ms).toISOString() });
    expect(isStale(event(0), DAY, DAY)).toBe(false);
    expect(isStale(event(0), DAY + 1, DAY)).toBe(true);
    expect(isStale(event(DAY), 0, 1000)).toBe(false);
    expect(isStale(event(0), 1e15, Infinity)).toBe(false);
  });
});

describe('staleWarning', () => {
  it.each([
    [1500, 1000, '1 second ago', 'is 1 second.'],
    [119_000, 60_000, '1 minute ago', 'is 1 minute.'],
    [7_200_000, 7_199_999, '2 hours ago', 'is 1 hour.'],
    [400 * DAY, 30 * DAY, '400 days ago', 'is 30 days.'],
  ])(
    'SE-09 the stale warning writes an age of %p ms and a limit of %p ms in words',
    (age, limit, ago, is) => {
      const event = { company: 'c', id: 'e', eventType: 't', occurredAt: new Date(0) };
      const line = staleWarning(event as Parameters<typeof staleWarning>[0], age, limit);
      expect(line).toContain(`1970-01-01T00:00:00.000Z, ${ago}, and "webhook.maxAgeMs" ${is}`);
    },
  );
});
