import { describe, expect, it } from '@jest/globals';
import { Backoff } from './backoff.js';

const BOUNDS = { firstMs: 100, maxMs: 5000 };

describe('Backoff', () => {
  it('Backoff doubles the wait with each failure up to maxMs, and returns firstMs again after a reset', () => {
    const backoff = new Backoff({ random: () => 0 }, BOUNDS);
    const waits = Array.from({ length: 8 }, () => backoff.nextMs());
    expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    backoff.reset();
    expect(backoff.nextMs()).toBe(100);
  });

  it('Backoff shortens a wait at random by up to half', () => {
    expect(new Backoff({ random: () => 0.5 }, BOUNDS).nextMs()).toBe(75);
    expect(new Backoff({ random: () => 0.999_999 }, BOUNDS).nextMs()).toBe(50);
  });

  it('Backoff returns maxMs after 5,000 failures in a row', () => {
    const backoff = new Backoff({ random: () => 0 }, BOUNDS);
    for (let failure = 0; failure < 5000; failure += 1) backoff.nextMs();
    expect(backoff.nextMs()).toBe(5000);
  });
});
