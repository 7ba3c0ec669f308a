// Runs families of attacks against the application for the given number of seconds.
import { setTimeout as wait } from 'node:timers/promises';
import { setPriority } from 'node:os';
import { crc32 } from 'node:zlib';
import { serveCommands } from '../support/processes/command-process.ts';
import type { Family } from './family.ts';
import { SeededRandom } from '../chaos/seeded-random.ts';
import { Tally } from './tally.ts';
import type { FamilyReport } from './tally.ts';

export interface AttackOrder {
  readonly port: number;
  readonly seed: number;
  readonly seconds: number;
  /** Names of files in `families/`. */
  readonly families: readonly string[];
}

// Lower priority than the application and the valid sender, which need the cores of a small machine.
setPriority(10);

serveCommands(null, {
  attack: ({ families, ...order }: AttackOrder): Promise<FamilyReport[]> =>
    Promise.all(families.map((file) => run(file, order))),
});

async function run(
  file: string,
  { port, seed, seconds }: Omit<AttackOrder, 'families'>,
): Promise<FamilyReport> {
  const { family } = (await import(`./families/${file}.ts`)) as { family: Family };
  const tally = new Tally();
  const attack = { port, seed, tally, random: new SeededRandom(seed ^ crc32(file)) };
  const end = performance.now() + seconds * 1000;
  let n = 0;
  await Promise.all(
    Array.from({ length: family.lanes }, async () => {
      while (performance.now() < end) {
        await family.attempt(attack, n++);
        await wait(1);
      }
    }),
  );
  return tally.report(family.name);
}
