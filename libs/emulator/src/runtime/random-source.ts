import { createHmac, randomBytes } from 'node:crypto';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** A repeatable sequence of random numbers: the same seed and name give the same sequence. */
export interface RandomStream {
  /** Draws a number from 0 (included) to 1 (excluded). */
  float(): number;
  /** Draws an integer from `min` to `max`, both included. */
  int(min: number, max: number): number;
}

/**
 * All random values of an emulator, generated from one seed. Ids, secrets and the signing key come from a keyed hash, whose
 * strength depends on the length of the seed. Fault decisions come from a small, fast generator.
 *
 * Each value has a name, and streams with different names are independent. Therefore the numbers that a delivery draws
 * do not depend on which of two concurrent deliveries starts first.
 */
export class RandomSource {
  /** The seed in use: the given seed, or 32 random bytes as hex. */
  readonly seed: string;
  readonly #counters = new Map<string, number>();
  /** A random text that is part of the hash of every id. Each reset replaces it. Empty if `freshIds` is false. */
  #idSalt: string[] = [];

  /** @param freshIds whether {@link id} returns other ids after each start and reset, even with the same seed */
  constructor(
    seed?: string | number,
    private readonly freshIds = false,
  ) {
    this.seed = seed === undefined ? randomBytes(32).toString('hex') : String(seed);
    this.reset();
  }

  /** Returns 32 bytes that depend on the seed and `name` only. */
  bytes(...name: (string | number)[]): Buffer {
    return createHmac('sha256', this.seed).update(JSON.stringify(name)).digest();
  }

  /** Returns the random sequence of `name`, from its start. */
  stream(...name: (string | number)[]): RandomStream {
    const generator = xoroshiro128plus(this.bytes('stream', ...name).readInt32LE(0));
    return {
      float: () => uniformFloat64(generator),
      int: (min, max) => uniformInt(generator, min, max),
    };
  }

  /** Returns the next UUID (in the form of version 4) for a purpose. The same seed gives the same UUIDs. */
  uuid(purpose: string): string {
    return this.#uuid(purpose, []);
  }

  /** Returns the next UUID for a purpose. The same seed gives the same UUIDs, unless `freshIds` is set. */
  id(purpose: string): string {
    return this.#uuid(purpose, this.#idSalt);
  }

  /** Returns the next secret for a purpose: `prefix` and 48 hex digits. */
  secret(prefix: string, purpose: string): string {
    const bytes = this.bytes('secret', purpose, this.#next(purpose));
    return prefix + bytes.subarray(0, 24).toString('hex');
  }

  /** Returns the next code for a purpose. The code has `length` decimal digits, 1 to 9. */
  digits(length: number, purpose: string): string {
    const number = this.bytes('digits', purpose, this.#next(purpose)).readUInt32BE(0);
    return String(number % 10 ** length).padStart(length, '0');
  }

  /**
   * Restarts all counters, so that the same calls return the same values again. If `freshIds` is set, {@link id}
   * returns other ids.
   */
  reset(): void {
    this.#counters.clear();
    if (this.freshIds) this.#idSalt = [randomBytes(16).toString('hex')];
  }

  #uuid(purpose: string, salt: string[]): string {
    const bytes = this.bytes('uuid', purpose, this.#next(purpose), ...salt).subarray(0, 16);
    bytes[6] = (bytes.readUInt8(6) & 0x0f) | 0x40;
    bytes[8] = (bytes.readUInt8(8) & 0x3f) | 0x80;
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #next(purpose: string): number {
    const number = this.#counters.get(purpose) ?? 0;
    this.#counters.set(purpose, number + 1);
    return number;
  }
}
