import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { StoreClock } from './store-clock.js';

const HOUR = 3_600_000;

function started(stored: { wall: number; clock: number }, runtime = new FakeRuntime()) {
  const clock = new StoreClock(runtime);
  clock.start(stored);
  return { clock, runtime };
}

describe('the store clock of SQLite', () => {
  it('the store clock of SQLite starts at the wall clock in a new file, and ignores later jumps of the wall clock', () => {
    const { clock, runtime } = started({ wall: 0, clock: 0 });
    const wall = runtime.now();
    runtime.advance(1000);
    for (const jump of [HOUR, -2 * HOUR]) {
      runtime.setWallClock(runtime.now() + jump);
      expect(clock.read()).toMatchObject({ wall: runtime.now(), clock: wall + 1000 });
    }
  });

  it('the store clock of SQLite starts at the stored clock plus the time since the clock was stored', () => {
    const runtime = new FakeRuntime();
    const wall = runtime.now();
    // The wall clock was set back an hour before it was stored.
    runtime.advance(5000);
    const { clock } = started({ wall, clock: wall + HOUR }, runtime);
    expect(clock.read().clock).toBe(wall + HOUR + 5000);
  });

  it('the store clock of SQLite does not go back if the wall clock was set back after the store clock was stored', () => {
    const runtime = new FakeRuntime();
    const stored = runtime.now() + HOUR;
    expect(started({ wall: stored, clock: stored }, runtime).clock.read().clock).toBe(stored);
  });

  it('the store clock of SQLite advances to a later clock of another process, and never goes back', () => {
    const { clock, runtime } = started({ wall: 0, clock: 0 });
    const { clock: now } = clock.read();
    clock.advanceTo(now - 10);
    expect(clock.read().clock).toBe(now);
    clock.advanceTo(now + HOUR);
    runtime.advance(500);
    expect(clock.read().clock).toBe(now + HOUR + 500);
    clock.start({ wall: 1, clock: 1 });
    expect(clock.read().clock).toBe(now + HOUR + 500);
  });
});
