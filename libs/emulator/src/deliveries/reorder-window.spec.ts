import { describe, expect, it } from '@jest/globals';
import { Delays } from '../runtime/delays.js';
import { ManualClock } from '../runtime/manual-clock.js';
import { RandomSource } from '../runtime/random-source.js';
import { reorder, ReorderWindow } from './reorder-window.js';

function setUp() {
  const clock = new ManualClock(0);
  const random = new RandomSource(1);
  let batch = 0;
  const window = new ReorderWindow(new Delays(clock), () => random.stream(batch++));
  const { signal } = new AbortController();
  const released: number[] = [];
  let running = 0;
  let maxRunning = 0;
  const enter = async (item: number, size: number, maxWaitMs = 1000) => {
    const endTurn = await window.enter(size, maxWaitMs, signal);
    maxRunning = Math.max(maxRunning, ++running);
    await Promise.resolve();
    released.push(item);
    running--;
    endTurn();
  };
  return { clock, enter, released, maxRunning: () => maxRunning };
}

describe('ReorderWindow', () => {
  it('ReorderWindow delays deliveries until the window is full, then releases them in another order', async () => {
    const { enter, released } = setUp();
    const first = enter(1, 3);
    const second = enter(2, 3);
    await Promise.resolve();
    expect(released).toEqual([]);
    await Promise.all([first, second, enter(3, 3)]);
    expect(released).not.toEqual([1, 2, 3]);
    expect(new Set(released)).toEqual(new Set([1, 2, 3]));
  });

  it('ReorderWindow releases deliveries one at a time', async () => {
    const { enter, maxRunning } = setUp();
    await Promise.all([1, 2, 3, 4, 5].map((item) => enter(item, 5)));
    expect(maxRunning()).toBe(1);
  });

  it('ReorderWindow releases an incomplete window after the maximum wait of its first delivery', async () => {
    const { clock, enter, released } = setUp();
    const both = [enter(1, 10, 500), enter(2, 10, 500)];
    clock.advance(499);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await Promise.all(both);
    expect(released).toEqual([2, 1]);
  });

  it('ReorderWindow starts a new window after each release', async () => {
    const { enter, released } = setUp();
    await Promise.all([enter(1, 2), enter(2, 2), enter(3, 2), enter(4, 2)]);
    expect(released).toHaveLength(4);
    expect(released.filter((item) => item <= 2)).toEqual([2, 1]);
    expect(released.filter((item) => item > 2)).toEqual([4, 3]);
  });
});

describe('reorder', () => {
  it('reorder() always returns another order of the same items', () => {
    const random = new RandomSource(1);
    for (let run = 0; run < 200; run++) {
      const items = Array.from({ length: 2 + (run % 4) }, (_, index) => index);
      const reordered = reorder(items, random.stream(run));
      expect(reordered).not.toEqual(items);
      expect(reordered).toHaveLength(items.length);
      expect(new Set(reordered)).toEqual(new Set(items));
    }
  });

  it('reorder() returns an empty list and a single item unchanged', () => {
    const stream = new RandomSource(1).stream('numbers');
    expect(reorder([], stream)).toEqual([]);
    expect(reorder(['only'], stream)).toEqual(['only']);
  });
});
