import { describe, expect, it } from '@jest/globals';
import { HandlerSlots } from './handler-slots.js';

/** Places of the handler `h`, to which nothing is due. */
function caughtUp(limit: number): HandlerSlots {
  const places = new HandlerSlots();
  places.add('h', limit);
  places.answered(places.ask(), []);
  return places;
}

const claimed = (count: number) => Array.from({ length: count }, () => ({ handler: 'h' }));

describe('HandlerSlots', () => {
  it('asks for all places at first, and again only if the claim was full or something woke it', () => {
    const places = new HandlerSlots();
    places.add('h', 4);
    const first = places.ask();
    expect(first).toEqual([{ handler: 'h', limit: 4 }]);
    places.answered(first, claimed(4));
    expect(places.wanting).toBe(false);
    places.handled('h');
    places.settled('h');
    const second = places.ask();
    expect(second).toEqual([{ handler: 'h', limit: 1 }]);
    places.answered(second, []);
    expect(places.wanting).toBe(false);
    expect(places.caughtUp).toEqual(['h']);
    places.free('h', 3);
    places.wake(['h']);
    expect(places.caughtUp).toEqual([]);
    expect(places.ask()).toEqual([{ handler: 'h', limit: 2 }]);
  });

  it('reserves nothing while there is a backlog, nor the last place before a claim has looked', () => {
    const places = caughtUp(2);
    places.wake();
    expect(places.reserve(['h'])).toEqual(['h']);
    expect(places.reserve(['h'])).toEqual([]);
    const wanted = places.ask();
    places.answered(wanted, claimed(1));
    places.free('h', 2);
    expect(places.reserve(['h'])).toEqual([]);
    places.answered(places.ask(), []);
    expect(places.reserve(['h'])).toEqual(['h']);
  });

  it('looks again after a claim that failed, with its places free', () => {
    const places = caughtUp(2);
    places.wake();
    places.failed(places.ask());
    expect(places.wanting).toBe(true);
    expect(places.idle).toBe(true);
  });

  it('keeps a wake-up that comes while a claim is under way', () => {
    const places = caughtUp(2);
    places.wake();
    const wanted = places.ask();
    places.wake();
    places.answered(wanted, []);
    expect(places.wanting).toBe(true);
  });

  it('holds at most twice its places while deliveries are settled', () => {
    const places = caughtUp(2);
    for (let run = 0; run < 4; run += 1) {
      expect(places.reserve(['h'])).toEqual(['h']);
      places.handled('h');
    }
    expect(places.reserve(['h'])).toEqual([]);
    places.settled('h');
    expect(places.reserve(['h'])).toEqual(['h']);
  });

  it('has no free places while it is closed, and reports when nothing is held', async () => {
    const places = caughtUp(2);
    places.reserve(['h']);
    places.close();
    places.wake();
    expect([places.wanting, places.reserve(['h']), places.withRoom]).toEqual([false, [], []]);
    let idle = false;
    const wait = places.whenIdle().then(() => (idle = true));
    await Promise.resolve();
    expect(idle).toBe(false);
    places.free('h');
    await wait;
    places.open();
    expect(places.withRoom).toEqual(['h']);
  });
});
