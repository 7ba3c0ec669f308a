import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../clock/manual.clock.js';
import { WaitingRoom } from '../clock/waiting.room.js';
import { RandomSource } from '../random/random.source.js';
import { ReorderWindow } from './reorder.window.js';

function setUp() {
  const clock = new ManualClock(0);
  const random = new RandomSource(1);
  let batch = 0;
  const window = new ReorderWindow(new WaitingRoom(clock), () => random.stream(batch++));
  const { signal } = new AbortController();
  const left: number[] = [];
  let inTheAir = 0;
  let most = 0;
  const enter = async (item: number, size: number, maxWaitMs = 1000) => {
    const leave = await window.enter(size, maxWaitMs, signal);
    most = Math.max(most, ++inTheAir);
    await Promise.resolve();
    left.push(item);
    inTheAir--;
    leave();
  };
  return { clock, enter, left, most: () => most };
}

describe('ReorderWindow', () => {
  it('holds deliveries until the window is full, then lets them go in another order', async () => {
    const { enter, left } = setUp();
    const first = enter(1, 3);
    const second = enter(2, 3);
    await Promise.resolve();
    expect(left).toEqual([]);
    await Promise.all([first, second, enter(3, 3)]);
    expect(left).not.toEqual([1, 2, 3]);
    expect(new Set(left)).toEqual(new Set([1, 2, 3]));
  });

  it('lets them go one after the other', async () => {
    const { enter, most } = setUp();
    await Promise.all([1, 2, 3, 4, 5].map((item) => enter(item, 5)));
    expect(most()).toBe(1);
  });

  it('lets go what it holds once the first has waited long enough', async () => {
    const { clock, enter, left } = setUp();
    const both = [enter(1, 10, 500), enter(2, 10, 500)];
    clock.advance(499);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await Promise.all(both);
    expect(left).toEqual([2, 1]);
  });

  it('starts a new window after each', async () => {
    const { enter, left } = setUp();
    await Promise.all([enter(1, 2), enter(2, 2), enter(3, 2), enter(4, 2)]);
    expect(left).toHaveLength(4);
    expect(left.filter((item) => item <= 2)).toEqual([2, 1]);
    expect(left.filter((item) => item > 2)).toEqual([4, 3]);
  });
});
