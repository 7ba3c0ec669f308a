import { describe, expect, it } from '@jest/globals';
import { ManualClock } from './manual.clock.js';
import { WaitingRoom } from './waiting.room.js';

function setUp() {
  const clock = new ManualClock(0);
  const room = new WaitingRoom(clock);
  const run = new AbortController();
  const wait = async (ms: number) => {
    await room.wait(ms, run.signal);
    return clock.now();
  };
  return { clock, room, run, wait };
}

describe('WaitingRoom', () => {
  it('lets wait for as long as asked', async () => {
    const { clock, wait } = setUp();
    const waited = wait(100);
    clock.advance(99);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await expect(waited).resolves.toBe(100);
  });

  it('ends every wait when hurried, and those to come, until it rests', async () => {
    const { clock, room, wait } = setUp();
    const waited = wait(100);
    room.hurry();
    await expect(waited).resolves.toBe(0);
    await expect(wait(100)).resolves.toBe(0);
    room.rest();
    void wait(100);
    expect(clock.pending).toBe(1);
  });

  it('ends a wait with its run, and leaves no timer behind', async () => {
    const { clock, run, wait } = setUp();
    const waited = wait(100);
    run.abort();
    await expect(waited).resolves.toBe(0);
    await expect(wait(100)).resolves.toBe(0);
    expect(clock.pending).toBe(0);
  });
});
