import { createHash } from 'node:crypto';

/**
 * Repeatable random numbers (mulberry32): the same seed and name give the same numbers. Different names are independent
 * of each other. The simulation and the hostile run import this source file directly, and Node strips its types: it
 * must not use parameter properties.
 */
export class SeededRandom {
  #state: number;

  constructor(seed: string | number, name = '') {
    this.#state = createHash('sha256').update(`${seed}/${name}`).digest().readUInt32BE();
  }

  /** A number from 0 (included) to 1 (excluded). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns `true` with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(values: readonly T[]): T {
    return values[this.between(0, values.length - 1)]!;
  }

  /** The values in a random order. */
  shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => ({ value, rank: this.next() }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ value }) => value);
  }

  /** Lower-case hex digits. */
  hex(digits: number): string {
    const eight = (): string =>
      this.between(0, 2 ** 32 - 1)
        .toString(16)
        .padStart(8, '0');
    return Array.from({ length: Math.ceil(digits / 8) }, eight)
      .join('')
      .slice(0, digits);
  }
}
