import { createHash } from 'node:crypto';

/** Chance that a seed fixes. Each name has a stream of its own, so that one draws nothing from another's. */
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

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(values: readonly [T, ...T[]]): T {
    return values[this.between(0, values.length - 1)]!;
  }
}
