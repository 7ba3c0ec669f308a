import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, take, toArray } from 'rxjs';
import { WatchedValues } from './watched.values.js';

const NEVER_MS = 3_600_000;

describe('WatchedValues', () => {
  it('reads what several watch in one go, and tells each its own', async () => {
    const readings: (readonly string[])[] = [];
    const values = new WatchedValues(async (names) => {
      readings.push(names);
      return new Map(names.map((name) => [name, name.toUpperCase()]));
    }, NEVER_MS);
    const told = Promise.all(
      ['a', 'b', 'a', 'c'].map((name) => firstValueFrom(values.watch(name))),
    );
    expect(await told).toEqual(['A', 'B', 'A', 'C']);
    // Those who came while the first was read for.
    expect(readings).toEqual([['a'], ['b', 'a', 'c']]);
  });

  it('tells again only what differs, and reads nothing once nobody watches', async () => {
    let reads = 0;
    const values = new WatchedValues(async () => new Map([['a', Math.floor(reads++ / 5)]]), 1);
    expect(await firstValueFrom(values.watch('a').pipe(take(3), toArray()))).toEqual([0, 1, 2]);
    const before = reads;
    values.look();
    expect(reads).toBe(before);
  });

  it('fails whoever watches where the values cannot be read, and serves who comes afterwards', async () => {
    let broken = true;
    const values = new WatchedValues(async () => {
      if (broken) throw new Error('the books are closed');
      return new Map([['a', 1]]);
    }, NEVER_MS);
    await expect(firstValueFrom(values.watch('a'))).rejects.toThrow('the books are closed');
    broken = false;
    expect(await firstValueFrom(values.watch('a'))).toBe(1);
  });
});
