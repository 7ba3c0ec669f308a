// npm run bench -- [row …] [--rounds N] [--quick]; see bench/README.md.
import { cpus, type } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { installLocked } from '../test/support/processes/run-command.ts';
import { versions } from './versions.ts';
import type { RowResult, TableResult } from './report/results.ts';
import { measureRoundRobin } from './rounds/round-robin.ts';
import type { Row, Scale, Table } from './rounds/row.ts';

const { values: flags, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});

await installLocked(import.meta.dirname, 'the packages that nestjs-payments is compared with');
// The line above installs packages that these files import. Therefore these files are loaded afterwards.
const { ROWS } = await import('./rows/index.ts');
const { summarize } = await import('./report/results.ts');
const { cellsOf, targetCells, terminalTable } = await import('./report/tables.ts');
const { writePerformancePage } = await import('./report/performance-page.ts');

const VERSIONS = versions();
const unknown = names.filter((name) => !ROWS.some((row) => row.name === name));
if (unknown.length > 0) {
  const known = ROWS.map(({ name }) => name).join(', ');
  throw new Error(`There is no row ${unknown.join(', ')}. The rows are ${known}.`);
}
const failed: string[] = [];
const results: Record<string, RowResult> = {};
/** The processes and servers of the current row. */
let ending = new AsyncDisposableStack();
/** After SIGINT or SIGTERM, the promise that ends the current row and then the process. */
let interrupted: Promise<never> | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = ending.disposeAsync().then(
      () => process.exit(1),
      () => process.exit(1),
    );
  });
}
for (const row of ROWS) {
  if (names.length === 0 || names.includes(row.name)) await runAndWrite(row);
}
console.log(`\n${terminalTable(targetCells(results))}`);
if (failed.length > 0) console.error(`\nFailed: ${failed.join(', ')}.`);
process.exit(failed.length > 0 ? 1 : 0);

/** Runs a row and writes its results to the page. If the row fails, the other rows still run. */
async function runAndWrite(row: Row): Promise<void> {
  try {
    const started = performance.now();
    console.log(`\n${row.title} (${row.name})`);
    results[row.name] = await run(row);
    if (!flags.quick) await writePerformancePage(results);
    console.log(`\n  ${((performance.now() - started) / 1000).toFixed(0)} s`);
  } catch (error) {
    // After an interrupt, the row fails because its processes have been ended.
    await interrupted;
    console.error(error);
    failed.push(row.name);
  }
}

async function run(row: Row): Promise<RowResult> {
  const rounds = flags.rounds === undefined ? undefined : Number(flags.rounds);
  const scale: Scale = { rounds: rounds ?? (flags.quick ? 2 : row.rounds), quick: flags.quick };
  const busyBefore = await processorLoad(1000);
  await using own = new AsyncDisposableStack();
  ending = own;
  const tables: TableResult[] = [];
  for (const table of await row.open(scale, own)) tables.push(await measure(table, scale));
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${type()}`;
  const date = new Date().toISOString().slice(0, 10);
  return { title: row.title, date, machine, busyBefore, versions: VERSIONS, tables };
}

async function measure(table: Table, scale: Scale): Promise<TableResult> {
  const { contenders, warmUp } = table;
  const rounds = table.rounds ?? scale.rounds;
  const samples = await measureRoundRobin(contenders, { rounds, warmUp }, (round) => {
    if (process.stdout.isTTY)
      process.stdout.write(`\r  ${table.title}: round ${round} of ${rounds}`);
  });
  const result = summarize(table, samples);
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[K');
  console.log(`\n  ${table.title}\n${terminalTable(cellsOf(result))}`);
  return result;
}

/** Waits for `ms` milliseconds, and returns the processor load of the machine during the wait, from 0 to 1. */
async function processorLoad(ms: number): Promise<number> {
  const before = processorTimes();
  await wait(ms);
  const after = processorTimes();
  return 1 - (after.idle - before.idle) / (after.all - before.all);
}

function processorTimes(): { idle: number; all: number } {
  const times = cpus().map((one) => one.times);
  const idle = times.reduce((sum, one) => sum + one.idle, 0);
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0);
  return { idle, all: idle + busy };
}
