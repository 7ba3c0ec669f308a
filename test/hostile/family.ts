import type { SeededRandom } from '../chaos/seeded-random.ts';
import type { Tally } from './tally.ts';

/** Parameters of an attempt. */
export interface Attack {
  /** Port of the application. */
  readonly port: number;
  readonly seed: number;
  /** Random numbers of this family only, so that a seed repeats them independently of the other families. */
  readonly random: SeededRandom;
  readonly tally: Tally;
}

/** One kind of attack. */
export interface Family {
  readonly name: string;
  /** How many attempts run at the same time. */
  readonly lanes: number;
  /** Runs attempt number `n`, from 0, and records its result in the tally. */
  attempt(attack: Attack, n: number): Promise<void>;
}
