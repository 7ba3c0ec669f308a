// npm run bench -- [row …] [--rounds N] [--quick] [--report]; see bench/README.md.
import { cpus, release, type } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installPeers, versions } from './peers.ts';
import { busyShare } from './processes/busy.ts';
import { interleave } from './rounds/interleave.ts';
import type { Row, Scale, Table } from './rounds/row.ts';
import type { RowResult, TableResult } from './report/results.ts';

const { values: flags, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
});

installPeers();
// Not before: they import the peers.
const { ROWS } = await import('./rows/index.ts');
const { readResults, writeResults } = await import('./report/results.ts');
const { cellsOf, targetCells, terminalTable } = await import('./report/tables.ts');
const { writeDocument } = await import('./report/document.ts');

const FILE = join(import.meta.dirname, 'results.json');
const VERSIONS = versions();
const unknown = names.filter((name) => !ROWS.some((row) => row.name === name));
if (unknown.length > 0) {
  const known = ROWS.map(({ name }) => name).join(', ');
  throw new Error(`There is no row ${unknown.join(', ')}. The rows are ${known}.`);
}
const failed: string[] = [];
/** How to be rid of what the row under way has started; and that it is being done, since somebody interrupted. */
let ending = new AsyncDisposableStack();
let interrupted: Promise<never> | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = ending.disposeAsync().then(
      () => process.exit(1),
      () => process.exit(1),
    );
  });
}
if (!flags.report) {
  for (const row of ROWS) {
    if (names.length === 0 || names.includes(row.name)) await runAndKeep(row);
  }
}
if (!flags.quick) {
  const found = readResults(FILE);
  // In the order of the rows, without those there are no more.
  const known = ROWS.flatMap(({ name }) => (found[name] ? [[name, found[name]] as const] : []));
  const results = Object.fromEntries(known);
  await writeResults(FILE, results);
  await writeDocument(results);
  console.log(`\n${terminalTable(targetCells(results))}`);
}
if (failed.length > 0) console.error(`\nFailed: ${failed.join(', ')}.`);
process.exit(failed.length > 0 ? 1 : 0);

/** One row's failure leaves the others be. */
async function runAndKeep(row: Row): Promise<void> {
  try {
    const began = performance.now();
    console.log(`\n${row.title} (${row.name})`);
    const result = await run(row);
    if (!flags.quick) await writeResults(FILE, { ...readResults(FILE), [row.name]: result });
    console.log(`\n  ${((performance.now() - began) / 1000).toFixed(0)} s`);
  } catch (error) {
    // What failed, failed for want of what is being ended.
    await interrupted;
    console.error(error);
    failed.push(row.name);
  }
}

async function run(row: Row): Promise<RowResult> {
  const asked = flags.rounds === undefined ? undefined : Number(flags.rounds);
  const scale: Scale = { rounds: asked ?? (flags.quick ? 2 : row.rounds), quick: flags.quick };
  const busyBefore = await busyShare(1000);
  await using own = new AsyncDisposableStack();
  ending = own;
  const tables: TableResult[] = [];
  for (const table of await row.open(scale, own)) tables.push(await measured(table, scale));
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${type()} ${release()}`;
  const date = new Date().toISOString().slice(0, 10);
  return { title: row.title, date, machine, busyBefore, versions: VERSIONS, tables };
}

async function measured(table: Table, scale: Scale): Promise<TableResult> {
  const { contenders, notes = [], warmUp, ...rest } = table;
  const rounds = table.rounds ?? scale.rounds;
  const samples = await interleave(contenders, { rounds, warmUp }, (round) => {
    if (process.stdout.isTTY)
      process.stdout.write(`\r  ${table.title}: round ${round} of ${rounds}`);
  });
  const found = contenders.map(({ name }, place) => ({ name, rounds: samples[place]! }));
  const result = { ...rest, notes, contenders: found };
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[K');
  console.log(`\n  ${table.title}\n${terminalTable(cellsOf(result))}`);
  return result;
}
