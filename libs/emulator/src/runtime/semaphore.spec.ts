import { describe, expect, it } from '@jest/globals';
import { Semaphore } from './semaphore.js';

describe('Semaphore', () => {
  it('Semaphore runs as many tasks as it has permits, and further tasks start in order when a permit is free', async () => {
    const semaphore = new Semaphore(2);
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const all = [1, 2, 3].map((item) =>
      semaphore.run(() => {
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

  it('Semaphore releases the permit of a task that rejects', async () => {
    const semaphore = new Semaphore(1);
    await expect(semaphore.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(semaphore.run(() => Promise.resolve('yes'))).resolves.toBe('yes');
  });
});
