import { describe, expect, it } from '@jest/globals';
import { isStale } from './event-receiver.js';

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
