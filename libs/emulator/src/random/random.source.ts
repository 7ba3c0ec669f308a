import { createHmac, randomBytes } from 'node:crypto';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Repeatable dice: the same source and the same names roll the same numbers. */
export interface RandomStream {
  /** A number from 0 (included) to 1 (excluded). */
  float(): number;
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number;
}

/**
 * Everything random in an emulator, drawn from one seed: ids, secrets and the signing key through a
 * keyed hash (as strong as the seed is long), fault dice through a small fast generator.
 *
 * Each draw is named. A stream therefore does not depend on what other streams drew before it, and
 * two deliveries that race roll the same dice whichever comes first.
 */
export class RandomSource {
  /** The seed in use: the one handed in, or 32 random bytes as hex. */
  readonly seed: string;
  readonly #drawn = new Map<string, number>();
  /** Part of every id of this run, if ids are fresh. */
  #run: string[] = [];

  /** @param freshIds whether {@link id} differs between runs of one seed */
  constructor(
    seed?: string | number,
    private readonly freshIds = false,
  ) {
    this.seed = seed === undefined ? randomBytes(32).toString('hex') : String(seed);
    this.reset();
  }

  /** 32 bytes that belong to `name`. */
  bytes(...name: (string | number)[]): Buffer {
    return createHmac('sha256', this.seed).update(JSON.stringify(name)).digest();
  }

  /** Dice that belong to `name`. */
  stream(...name: (string | number)[]): RandomStream {
    const generator = xoroshiro128plus(this.bytes('stream', ...name).readInt32LE(0));
    return {
      float: () => uniformFloat64(generator),
      int: (min, max) => uniformInt(generator, min, max),
    };
  }

  /** The next UUID (version 4 in form) of this purpose, the same in each run of the seed. */
  uuid(purpose: string): string {
    return this.#uuid(purpose, []);
  }

  /** The next UUID of this purpose. Each run has its own if ids are fresh. */
  id(purpose: string): string {
    return this.#uuid(purpose, this.#run);
  }

  /** The next secret of this purpose: `prefix` and 48 hex digits. */
  secret(prefix: string, purpose: string): string {
    const bytes = this.bytes('secret', purpose, this.#next(purpose));
    return prefix + bytes.subarray(0, 24).toString('hex');
  }

  /** The next code of this purpose: so many decimal digits, 1 to 9. */
  digits(length: number, purpose: string): string {
    const number = this.bytes('digits', purpose, this.#next(purpose)).readUInt32BE(0);
    return String(number % 10 ** length).padStart(length, '0');
  }

  /** Counts from the start again, so that the same calls draw the same ids. */
  reset(): void {
    this.#drawn.clear();
    if (this.freshIds) this.#run = [randomBytes(16).toString('hex')];
  }

  #uuid(purpose: string, run: string[]): string {
    const bytes = this.bytes('uuid', purpose, this.#next(purpose), ...run).subarray(0, 16);
    bytes[6] = (bytes.readUInt8(6) & 0x0f) | 0x40;
    bytes[8] = (bytes.readUInt8(8) & 0x3f) | 0x80;
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #next(purpose: string): number {
    const number = this.#drawn.get(purpose) ?? 0;
    this.#drawn.set(purpose, number + 1);
    return number;
  }
}
