import { describe, expect, it } from '@jest/globals';
import { ManualClock } from './manual-clock.js';

describe('ManualClock', () => {
  it('ManualClock changes its time only by advance()', () => {
    const clock = new ManualClock(1000);
    expect(clock.now()).toBe(1000);
    clock.advance(500);
    expect(clock.now()).toBe(1500);
  });

  it('ManualClock fires due timers in the order of their due times, each at its own time', () => {
    const clock = new ManualClock(0);
    const fired: [string, number][] = [];
    clock.setTimeout(() => fired.push(['late', clock.now()]), 30);
    clock.setTimeout(() => {
      fired.push(['early', clock.now()]);
      clock.setTimeout(() => fired.push(['between', clock.now()]), 5);
    }, 10);
    clock.setTimeout(() => fired.push(['never', clock.now()]), 31);
    clock.advance(30);
    expect(fired).toEqual([
      ['early', 10],
      ['between', 15],
      ['late', 30],
    ]);
    expect(clock.pending).toBe(1);
  });

  it('ManualClock does not fire a timer that was cleared', () => {
    const clock = new ManualClock(0);
    let fired = false;
    clock.clearTimeout(clock.setTimeout(() => (fired = true), 1));
    clock.advance(10);
    expect(fired).toBe(false);
  });

  it('ManualClock throws a TypeError for a negative time and for NaN', () => {
    expect(() => new ManualClock().advance(-1)).toThrow(TypeError);
    expect(() => new ManualClock().advance(Number.NaN)).toThrow(TypeError);
  });
});
