/**
 * Attacks a merchant's application on each HTTP adapter while a sender sends valid webhook requests to it.
 *
 * npm run hostile                             a minute on Express, then a minute on Fastify
 * npm run hostile -- --seconds 8              duration of each attack
 * npm run hostile -- --adapter fastify        one adapter
 * npm run hostile -- --family hostile-json    one family of attacks: the name of a file in families/
 * npm run hostile -- --seed 42                repeats the attempts of the run with this seed
 * npm run hostile -- --no-latency-bar         ignores the latency limits, for a busy machine
 */
import { parseArgs } from 'node:util';
import { printResults } from './report.ts';
import { attack } from './round.ts';
import { LIMITS, faults } from './round-failures.ts';

const MAX_FAULTS_SHOWN = 20;

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    adapter: { type: 'string' },
    family: { type: 'string' },
    'no-latency-bar': { type: 'boolean', default: false },
  },
});
const seconds = Number(flags.seconds);
const seed = Number(flags.seed);
const adapters = ['express', 'fastify'].filter((adapter) => adapter === (flags.adapter ?? adapter));
if (!(seconds >= 1 && seconds <= 3600) || !Number.isInteger(seed) || adapters.length === 0) {
  console.error(
    '--seconds must be from 1 to 3600, --seed a whole number and --adapter express or fastify.',
  );
  process.exit(2);
}
const repeat = `npm run hostile -- --seed ${seed} --seconds ${seconds}`;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

console.log(`hostile, seed ${seed}; to repeat it: ${repeat}`);
if (flags['no-latency-bar']) {
  console.log(
    `The limits for valid requests (p99 under ${LIMITS.p99Ms} ms, under ${LIMITS.busy * 100}% busy) are not applied.`,
  );
}
let failed = 0;
for (const adapter of adapters) {
  console.log(`\n${adapter}, ${seconds} s`);
  const found = await run(adapter);
  const times = new Map<string, number>();
  for (const fault of found) times.set(fault, (times.get(fault) ?? 0) + 1);
  for (const [fault, count] of [...times].slice(0, MAX_FAULTS_SHOWN)) {
    console.log(`  WRONG: ${fault}${count > 1 ? ` (${count} times)` : ''}`);
  }
  if (times.size > MAX_FAULTS_SHOWN) console.log(`  and ${times.size - MAX_FAULTS_SHOWN} more`);
  failed += found.length;
}
console.log(
  failed === 0
    ? `\nhostile: passed on ${adapters.join(' and ')}, seed ${seed}`
    : `\nhostile: FAILED with ${failed} faults; to repeat it: ${repeat}`,
);
process.exitCode = failed === 0 ? 0 : 1;

async function run(adapter: string): Promise<string[]> {
  try {
    const round = await attack(adapter, seconds, seed, flags.family);
    printResults(round);
    return faults(round, !flags['no-latency-bar']);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
