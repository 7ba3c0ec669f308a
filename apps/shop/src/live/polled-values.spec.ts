import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { firstValueFrom, take, toArray } from 'rxjs';
import { PolledValues } from './polled-values.js';

const NEVER_MS = 3_600_000;

describe('PolledValues', () => {
  beforeAll(() => Logger.overrideLogger(false));
  afterAll(() => Logger.overrideLogger(['log', 'warn', 'error']));

  it('PolledValues reads the watched keys together and sends each watcher its own value', async () => {
    const reads: (readonly string[])[] = [];
    const values = new PolledValues(
      'letters',
      async (keys) => {
        reads.push(keys);
        return new Map(keys.map((key) => [key, key.toUpperCase()]));
      },
      NEVER_MS,
    );
    const sent = Promise.all(['a', 'b', 'a', 'c'].map((key) => firstValueFrom(values.watch(key))));
    expect(await sent).toEqual(['A', 'B', 'A', 'C']);
    // Watchers that were added during the first read share the second read.
    expect(reads).toEqual([['a'], ['b', 'a', 'c']]);
  });

  it('PolledValues sends a value only if it has changed, and reads nothing without a watcher', async () => {
    let reads = 0;
    const values = new PolledValues('a', async () => new Map([['a', Math.floor(reads++ / 5)]]), 1);
    expect(await firstValueFrom(values.watch('a').pipe(take(3), toArray()))).toEqual([0, 1, 2]);
    const before = reads;
    values.refresh();
    expect(reads).toBe(before);
  });

  it('PolledValues sends an error to its watchers if the values cannot be read, and still serves later watchers', async () => {
    let broken = true;
    const read = async () => {
      if (broken) throw new Error('the database is closed');
      return new Map([['a', 1]]);
    };
    const values = new PolledValues('a', read, NEVER_MS);
    await expect(firstValueFrom(values.watch('a'))).rejects.toThrow('the database is closed');
    broken = false;
    expect(await firstValueFrom(values.watch('a'))).toBe(1);
  });
});
