import { describe, expect, it } from '@jest/globals';
import { HandlerSlots } from './handler-slots.js';

/** Slots of the handler `h`, without due deliveries. */
function caughtUp(limit: number): HandlerSlots {
  const slots = new HandlerSlots();
  slots.add('h', limit);
  slots.claimed(slots.requestForClaim(), []);
  return slots;
}

const claimed = (count: number) => Array.from({ length: count }, () => ({ handler: 'h' }));

describe('HandlerSlots', () => {
  it('the first claim requests all slots, and later claims request slots only after a wake-up or a claim that filled its slots', () => {
    const slots = new HandlerSlots();
    slots.add('h', 4);
    const first = slots.requestForClaim();
    expect(first).toEqual([{ handler: 'h', limit: 4 }]);
    slots.claimed(first, claimed(4));
    expect(slots.wanting).toBe(false);
    slots.handled('h');
    slots.settled('h');
    const second = slots.requestForClaim();
    expect(second).toEqual([{ handler: 'h', limit: 1 }]);
    slots.claimed(second, []);
    expect(slots.wanting).toBe(false);
    expect(slots.caughtUp).toEqual(['h']);
    slots.free('h', 3);
    slots.wake(['h']);
    expect(slots.caughtUp).toEqual([]);
    expect(slots.requestForClaim()).toEqual([{ handler: 'h', limit: 2 }]);
  });

  it('reserve() takes no slot while a handler has a backlog, and leaves the last slot for a claim after a wake-up', () => {
    const slots = caughtUp(2);
    slots.wake();
    expect(slots.reserve(['h'])).toEqual(['h']);
    expect(slots.reserve(['h'])).toEqual([]);
    const wanted = slots.requestForClaim();
    slots.claimed(wanted, claimed(1));
    slots.free('h', 2);
    expect(slots.reserve(['h'])).toEqual([]);
    slots.claimed(slots.requestForClaim(), []);
    expect(slots.reserve(['h'])).toEqual(['h']);
  });

  it('a failed claim frees its slots, and the next claim requests them again', () => {
    const slots = caughtUp(2);
    slots.wake();
    slots.claimFailed(slots.requestForClaim());
    expect(slots.wanting).toBe(true);
    expect(slots.idle).toBe(true);
  });

  it('a wake-up during a claim makes another claim necessary', () => {
    const slots = caughtUp(2);
    slots.wake();
    const wanted = slots.requestForClaim();
    slots.wake();
    slots.claimed(wanted, []);
    expect(slots.wanting).toBe(true);
  });

  it('while deliveries are settled, at most twice as many deliveries are leased as there are slots', () => {
    const slots = caughtUp(2);
    for (let run = 0; run < 4; run += 1) {
      expect(slots.reserve(['h'])).toEqual(['h']);
      slots.handled('h');
    }
    expect(slots.reserve(['h'])).toEqual([]);
    slots.settled('h');
    expect(slots.reserve(['h'])).toEqual(['h']);
  });

  it('whenIdle() resolves when nothing is leased', async () => {
    const slots = caughtUp(2);
    slots.reserve(['h']);
    let idle = false;
    const wait = slots.whenIdle().then(() => (idle = true));
    await Promise.resolve();
    expect(idle).toBe(false);
    slots.free('h');
    await wait;
  });
});
