/**
 * Plays random scenarios of faults against the real receiver, worker and stores.
 *
 * npm run simulate                                  a minute of scenarios in virtual time, on SQLite in memory
 * npm run simulate -- --seconds 600                 ten minutes
 * npm run simulate -- --seed 42 --path 17:0:3       repeats one scenario of an earlier run, with a trace
 * npm run simulate -- --store sqlite                scenarios in real time, on SQLite (or `postgres`)
 */
import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import * as fc from 'fast-check';
import { startPostgres } from 'test-postgres';
import type { PostgresServer } from 'test-postgres';
import { playInPostgres, playInSqlite, REAL } from './play-durable.ts';
import { scenarios, VIRTUAL } from './scenario.ts';
import type { Scenario } from './scenario.ts';
import { playInMemory } from './play-in-memory.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    path: { type: 'string' },
    store: { type: 'string', default: 'memory' },
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

const store = flags.store === 'memory' ? '' : `--store ${flags.store} `;
let server: PostgresServer | undefined;
let current: Promise<string[]> = Promise.resolve([]);
/** The trace of the scenario that is played. */
let lines: string[] = [];
let played = 0;
let stepsPlayed = 0;
const bounds = flags.store === 'memory' ? VIRTUAL : REAL;
const property = fc.asyncProperty(scenarios(bounds), async (scenario: Scenario) => {
  // The last scenario may end after the time limit.
  current = play(scenario);
  const wrong = await current;
  played += 1;
  stepsPlayed += scenario.steps.length;
  if (wrong.length > 0) throw new Error(wrong[0]);
});
const result = await fc.check(property, {
  seed,
  numRuns: flags.path === undefined ? Number.MAX_SAFE_INTEGER : 1,
  ...(flags.path !== undefined && { path: flags.path, endOnFailure: true }),
  // A scenario in real time does not repeat exactly, so shrinking would not find a smaller failing scenario.
  ...(flags.store !== 'memory' && { endOnFailure: true }),
  ...(flags.path === undefined && {
    interruptAfterTimeLimit: seconds * 1000,
    markInterruptAsFailure: false,
  }),
});
await current;
await server?.end();
if (result.failed && result.counterexample !== null) {
  const { events, steps } = result.counterexample[0];
  for (const line of lines) console.log(line);
  for (const event of events) console.log(`  event ${JSON.stringify(event)}`);
  for (const step of steps) console.log(`  ${JSON.stringify(step)}`);
  console.log(`WRONG: ${String(result.errorInstance)}`);
  console.log(
    `replay: npm run simulate -- ${store}--seed ${seed} --path ${result.counterexamplePath}`,
  );
  process.exitCode = 1;
} else {
  console.log(`simulate: passed ${played} scenarios of ${stepsPlayed} steps, seed ${seed}`);
}
// A simulated process that crashed may wait for a timer that never runs. This wait would keep the real process alive.
process.exit();

async function play(scenario: Scenario): Promise<string[]> {
  lines = [];
  // In real time, a replay does not repeat the scenario exactly, so the trace is the only record of a failure.
  const record = flags.store === 'memory' ? undefined : (line: string) => void lines.push(line);
  const trace = flags.path === undefined ? record : console.log;
  if (flags.store === 'sqlite') return playInSqlite(scenario, trace);
  if (flags.store !== 'postgres') return playInMemory(scenario, trace);
  server ??= await startPostgres();
  return playInPostgres(scenario, await server.createDatabase(), trace);
}
