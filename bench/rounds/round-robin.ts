import type { Contender, Sample } from './row.ts';

/**
 * Measures every contender once per round, one after the other (A B C A B C …), so that other load on the machine
 * affects all contenders. The warm-up rounds, in which V8 compiles code and caches fill, run first and do not count.
 *
 * @returns a list of samples for each contender, in the order of the rounds.
 */
export async function measureRoundRobin(
  contenders: readonly Contender[],
  { rounds, warmUp = 1 }: { readonly rounds: number; readonly warmUp?: number | undefined },
  onRound: (round: number) => void = () => {},
): Promise<Sample[][]> {
  const samples: Sample[][] = contenders.map(() => []);
  for (let round = 1 - warmUp; round <= rounds; round += 1) {
    onRound(round);
    for (const [index, contender] of contenders.entries()) {
      const sample = await contender.measure();
      if (!Number.isFinite(sample.value)) {
        throw new Error(
          `${contender.name} measured ${sample.value}, which is not a finite number.`,
        );
      }
      if (round > 0) samples[index]!.push(sample);
    }
  }
  return samples;
}
