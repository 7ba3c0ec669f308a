import * as fc from 'fast-check';

const { FAST_CHECK_SEED: seed, FAST_CHECK_FACTOR: factor = 1 } = process.env;

/**
 * Checks a property with random cases. Throws with the seed and the smallest failing case if it does not hold.
 * `FAST_CHECK_SEED` repeats a run; `FAST_CHECK_FACTOR` multiplies the number of cases (default 300).
 */
export function holds<T>(property: fc.IProperty<T>, cases = 300): void {
  fc.assert(property, {
    numRuns: cases * Number(factor),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
  });
}
