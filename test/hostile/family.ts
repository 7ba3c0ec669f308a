import type { SeededRandom } from '../../apps/demo/src/chaos/seeded-random.ts';
import type { Tally } from './tally.ts';

/** What an attempt has at hand. */
export interface Attack {
  /** Port of the application. */
  readonly port: number;
  readonly seed: number;
  /** Randomness of this family only, so that the seed repeats it whatever the others do. */
  readonly random: SeededRandom;
  readonly tally: Tally;
}

/** One kind of attack. */
export interface Family {
  readonly name: string;
  /** How many attempts run at the same time. */
  readonly lanes: number;
  /** The `n`-th attempt, from 0. Counts and judges itself with the tally. */
  attempt(attack: Attack, n: number): Promise<void>;
}
