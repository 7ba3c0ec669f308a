import { describe, expect, it } from '@jest/globals';
import { DeliverySlots } from './delivery.slots.js';

describe('DeliverySlots', () => {
  it('lets so many be under way and the rest wait in line', async () => {
    const slots = new DeliverySlots(2);
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const all = [1, 2, 3].map((item) =>
      slots.run(() => {
        started.push(item);
        return new Promise<void>((end) => ends.push(end));
      }),
    );
    expect(started).toEqual([1, 2]);
    ends[0]?.();
    await all[0];
    expect(started).toEqual([1, 2, 3]);
    ends[1]?.();
    ends[2]?.();
    await Promise.all(all);
  });

  it('frees the slot of what failed', async () => {
    const slots = new DeliverySlots(1);
    await expect(slots.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(slots.run(() => Promise.resolve('yes'))).resolves.toBe('yes');
  });
});
