import { describe, expect, it } from '@jest/globals';
import { Delays } from './delays.js';
import { ManualClock } from './manual-clock.js';

function setUp() {
  const clock = new ManualClock(0);
  const delays = new Delays(clock);
  const abort = new AbortController();
  const wait = async (ms: number) => {
    await delays.wait(ms, abort.signal);
    return clock.now();
  };
  return { clock, delays, abort, wait };
}

describe('Delays', () => {
  it('delays resolve after the given time and not before', async () => {
    const { clock, wait } = setUp();
    const waited = wait(100);
    clock.advance(99);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await expect(waited).resolves.toBe(100);
  });

  it('current and later delays end at once after skipAll(), until stopSkipping() is called', async () => {
    const { clock, delays, wait } = setUp();
    const waited = wait(100);
    delays.skipAll();
    await expect(waited).resolves.toBe(0);
    await expect(wait(100)).resolves.toBe(0);
    delays.stopSkipping();
    void wait(100);
    expect(clock.pending).toBe(1);
  });

  it('delays end when their signal aborts, and clear their timers', async () => {
    const { clock, abort, wait } = setUp();
    const waited = wait(100);
    abort.abort();
    await expect(waited).resolves.toBe(0);
    await expect(wait(100)).resolves.toBe(0);
    expect(clock.pending).toBe(0);
  });
});
