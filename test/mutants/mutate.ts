/**
 * Proves that the tests of each promise find faults: applies each mutant of the catalogue to a copy of the repository,
 * runs the tests of its promise, and fails if these tests pass.
 *
 * npm run mutate                             every mutant
 * npm run mutate -- WH-02 IN-13              the mutants of some promises
 * npm run mutate -- --sample 5 --seed 42     5 mutants that specs find, the same ones for the same seed
 * npm run mutate -- --list                   the catalogue
 */
import { rmSync } from 'node:fs';
import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import * as fc from 'fast-check';
import { MUTANTS } from './catalog/index.ts';
import type { Mutant } from './mutant.ts';
import { build, checkPromises } from './promise-check.ts';
import { WorkspaceCopy } from './workspace-copy.ts';

const { values: flags, positionals: ids } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    list: { type: 'boolean', default: false },
  },
});
const mutants = select();
if (flags.list) {
  for (const { promise, file, fault } of mutants) console.log(`${promise}  ${file}: ${fault}`);
  process.exit(0);
}

const folder = await mkdtemp(join(await realpath(tmpdir()), 'nestjs-payments-mutate-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const copy = await WorkspaceCopy.create(resolve(import.meta.dirname, '../..'), folder);
await checkWithoutMutants();
let survivors = 0;
for (const mutant of mutants) {
  const began = performance.now();
  const problem = await kill(mutant);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const { promise, file, fault } = mutant;
  console.log(
    `${problem === undefined ? 'killed  ' : 'SURVIVED'}  ${promise}  ${file}: ${fault} (${seconds} s)`,
  );
  if (problem === undefined) continue;
  survivors += 1;
  console.log(`          ${problem.trim().replaceAll('\n', '\n          ')}`);
}
console.log(`mutate: ${mutants.length - survivors} killed, ${survivors} survived`);
process.exitCode = survivors > 0 || mutants.length === 0 ? 1 : 0;

function select(): readonly Mutant[] {
  const unknown = ids.filter((id) => MUTANTS.every(({ promise }) => promise !== id));
  if (unknown.length > 0) return reject(`The catalogue has no mutant of ${unknown.join(', ')}.`);
  const chosen = MUTANTS.filter(({ promise }) => ids.length === 0 || ids.includes(promise));
  if (flags.sample === undefined) return chosen;
  const size = Number(flags.sample);
  const seed = Number(flags.seed);
  if (!Number.isInteger(size) || size < 1 || !Number.isInteger(seed)) {
    return reject('--sample must be a whole number from 1, and --seed a whole number.');
  }
  const quick = chosen.filter(({ smoke, releaseOnly }) => (smoke ?? releaseOnly) === undefined);
  const length = Math.min(size, quick.length);
  const subsets = fc.shuffledSubarray(quick, { minLength: length, maxLength: length });
  console.log(`mutate, seed ${seed}`);
  return fc.sample(subsets, { seed, numRuns: 1 })[0] ?? [];
}

function reject(message: string): never {
  console.error(message);
  process.exit(2);
}

/** The tests must pass before the first mutant is applied. Otherwise, their failures prove nothing. */
async function checkWithoutMutants(): Promise<void> {
  await build(copy.root);
  const { failed, broken } = await checkPromises(copy.root, mutants);
  if (failed.length === 0 && broken === undefined) return;
  console.error(`Without a mutant, these tests fail:\n${[...failed, broken ?? ''].join('\n')}`);
  process.exit(1);
}

/** Returns why the tests of the promise did not find the fault, or `undefined` if they did. */
async function kill(mutant: Mutant): Promise<string | undefined> {
  try {
    return await copy.with(mutant, async () => {
      await build(copy.root);
      const { passed, failed, broken } = await checkPromises(copy.root, [mutant]);
      if (failed.length > 0) return undefined;
      if (broken !== undefined) return `The specs did not run:\n${broken}`;
      return `${passed} tests of ${mutant.promise} passed with the fault.`;
    });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
