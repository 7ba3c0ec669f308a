import { createHash } from 'node:crypto';

/** Random numbers that a seed fixes. Each name has a stream of its own, so that one does not change another. */
export class SeededRandom {
  #drawn = 0;

  constructor(
    private readonly seed: string,
    private readonly name: string,
  ) {}

  /** A number from 0 (included) to 1 (excluded). */
  next(): number {
    this.#drawn += 1;
    const hash = createHash('sha256').update(`${this.seed}/${this.name}/${this.#drawn}`).digest();
    return hash.readUInt32BE() / 2 ** 32;
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(values: readonly [T, ...T[]]): T {
    return values[this.between(0, values.length - 1)]!;
  }

  /** The values in a random order. */
  shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => ({ value, rank: this.next() }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ value }) => value);
  }
}
