import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { replaceMarked } from './markers.ts';
import type { Results, RowResult } from './results.ts';
import { costsOf, sizing } from './sizing.ts';
import { cellsOf, markdownTable, targetCells } from './tables.ts';

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'performance.md');

/** Writes the sections of the rows that were run. The rest of docs/performance.md stays unchanged. */
export async function writePerformancePage(results: Results): Promise<void> {
  const page = replaceMarked(await readFile(PAGE, 'utf8'), (name, old) =>
    generated(name, results, old),
  );
  const options = { ...(await resolveConfig(PAGE)), filepath: PAGE };
  await writeFile(PAGE, await format(page, options));
}

function generated(name: string, results: Results, old: string): string {
  if (name === 'targets') return mergedTargets(results, old);
  if (name === 'versions') return versions(results);
  if (name === 'sizing') {
    // The sizing needs several rows in one run.
    const costs = costsOf(results);
    return costs === null ? old : sizing(costs);
  }
  const row = results[name];
  return row === undefined ? old : section(row);
}

function section(row: RowResult): string {
  const tables = row.tables.flatMap((table) => [
    `**${table.title}**`,
    markdownTable(cellsOf(table)),
  ]);
  const notes = new Set(row.tables.flatMap((table) => table.notes));
  return [...tables, ...notes, measuredOn(row)].join('\n\n');
}

function measuredOn({ date, machine, versions: { node }, busyBefore }: RowResult): string {
  const busy =
    busyBefore > 0.15
      ? ' Other processes used the machine when this measurement began, so the ratios are more reliable than the other figures.'
      : '';
  return `Measured on ${date}: ${machine}, Node ${node}.${busy}`;
}

/** Returns the table of targets, in which the new targets of `results` replace the old targets of the same rows. */
export function mergedTargets(results: Results, old: string): string {
  const [head, rule, ...measured] = markdownTable(targetCells(results)).split('\n');
  const kept = old
    .split('\n')
    .slice(2)
    .filter((line) => line !== '' && !Object.hasOwn(results, rowOf(line)));
  return [head, rule, ...kept, ...measured].join('\n');
}

function rowOf(line: string): string {
  return line.split('|')[1]?.trim() ?? '';
}

function versions(results: Results): string {
  const of = Object.assign({}, ...Object.values(results).map((row) => row.versions)) as object;
  return Object.entries(of)
    .map(([what, version]) => `${what} ${version}`)
    .join(', ');
}
