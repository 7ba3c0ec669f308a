import type { Contender, Sample } from './row.ts';

/**
 * Measures every contender once a round, one after the other (A B C A B C …), so that what disturbs the machine
 * disturbs all of them. Rounds to warm up go first, in which code is compiled and caches fill.
 *
 * @returns the samples of each contender, by its place, in the order of the rounds.
 */
export async function interleave(
  contenders: readonly Contender[],
  { rounds, warmUp = 1 }: { readonly rounds: number; readonly warmUp?: number | undefined },
  onRound: (round: number) => void = () => {},
): Promise<Sample[][]> {
  const samples: Sample[][] = contenders.map(() => []);
  for (let round = 1 - warmUp; round <= rounds; round += 1) {
    onRound(round);
    for (const [place, contender] of contenders.entries()) {
      const sample = await contender.measure();
      if (!Number.isFinite(sample.value)) {
        throw new Error(`${contender.name} measured ${sample.value}, which is no figure.`);
      }
      if (round > 0) samples[place]!.push(sample);
    }
  }
  return samples;
}
