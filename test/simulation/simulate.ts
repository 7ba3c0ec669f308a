/**
 * Plays random scenarios of faults against the real receiver, worker and SQLite store, in virtual time.
 *
 * npm run simulate                                  a minute of scenarios, on SQLite in memory
 * npm run simulate -- --seconds 600                 ten minutes
 * npm run simulate -- --seed 42 --path 17:0:3       repeats one scenario of an earlier run, with a trace
 */
import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import * as fc from 'fast-check';
import { scenarios } from './scenario.ts';
import type { Scenario } from './scenario.ts';
import { playInMemory } from './play-in-memory.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    path: { type: 'string' },
  },
});
const seconds = Number(flags.seconds);
const seed = Number(flags.seed);
if (!(seconds >= 1 && seconds <= 86_400) || !Number.isInteger(seed)) {
  console.error('--seconds must be from 1 to 86,400, and --seed a whole number.');
  process.exit(2);
}
if (flags.path === undefined) Logger.overrideLogger(false);
console.log(`simulate, seed ${seed}${flags.path === undefined ? `, ${seconds} s` : ''}`);

let current: Promise<string[]> = Promise.resolve([]);
let played = 0;
let stepsPlayed = 0;
const property = fc.asyncProperty(scenarios(), async (scenario: Scenario) => {
  // The last scenario may end after the time limit.
  current = playInMemory(scenario, flags.path === undefined ? undefined : console.log);
  const wrong = await current;
  played += 1;
  stepsPlayed += scenario.steps.length;
  if (wrong.length > 0) throw new Error(wrong[0]);
});
const result = await fc.check(property, {
  seed,
  numRuns: flags.path === undefined ? Number.MAX_SAFE_INTEGER : 1,
  ...(flags.path !== undefined && { path: flags.path, endOnFailure: true }),
  ...(flags.path === undefined && {
    interruptAfterTimeLimit: seconds * 1000,
    markInterruptAsFailure: false,
  }),
});
await current;
if (result.failed && result.counterexample !== null) {
  const { events, steps } = result.counterexample[0];
  for (const event of events) console.log(`  event ${JSON.stringify(event)}`);
  for (const step of steps) console.log(`  ${JSON.stringify(step)}`);
  console.log(`WRONG: ${String(result.errorInstance)}`);
  console.log(`replay: npm run simulate -- --seed ${seed} --path ${result.counterexamplePath}`);
  process.exitCode = 1;
} else {
  console.log(`simulate: passed ${played} scenarios of ${stepsPlayed} steps, seed ${seed}`);
}
// A simulated process that crashed may wait for a timer that never runs. This wait would keep the real process alive.
process.exit();
