import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { barChart } from './bar-chart.ts';
import { markersOf, replaceBetweenMarkers } from './markers.ts';
import type { Results, RowResult } from './results.ts';
import { sizing } from './sizing.ts';
import { cellsOf, markdownTable, targetCells } from './tables.ts';

const DOCS = join(import.meta.dirname, '..', '..', 'docs');
const PAGE = join(DOCS, 'performance.md');
const CHARTS = join(DOCS, 'performance');

/** Writes the charts and the generated parts of docs/performance.md. The text outside its markers stays. */
export async function writePerformancePage(results: Results): Promise<void> {
  await mkdir(CHARTS, { recursive: true });
  for (const file of await readdir(CHARTS)) {
    if (file.endsWith('.svg')) await rm(join(CHARTS, file));
  }
  for (const [name, row] of Object.entries(results)) {
    await writeFile(join(CHARTS, `${name}.svg`), barChart(row));
  }
  const page = await readFile(PAGE, 'utf8');
  const filled = markersOf(page).reduce(
    (text, name) => replaceBetweenMarkers(text, name, generated(name, results)),
    page,
  );
  const options = { ...(await resolveConfig(PAGE)), filepath: PAGE };
  await writeFile(PAGE, await format(filled, options));
}

function generated(name: string, results: Results): string {
  if (name === 'targets') return markdownTable(targetCells(results));
  if (name === 'machine') return machine(results);
  if (name === 'sizing') return sizing(results);
  const row = results[name];
  return row === undefined ? '_Not measured yet._' : section(name, row);
}

function section(name: string, row: RowResult): string {
  const tables = row.tables.flatMap((table) => [
    `**${table.title}**`,
    markdownTable(cellsOf(table)),
  ]);
  const notes = new Set(row.tables.flatMap((table) => table.notes));
  const chart = `![${row.title}, bar chart](performance/${name}.svg)`;
  return [chart, ...tables, ...notes].join('\n\n');
}

/** The machine and date of each row: one line if they are the same for all rows. */
function machine(results: Results): string {
  const rows = Object.entries(results);
  const kinds = Map.groupBy(rows, ([, row]) => `${row.machine}, Node ${row.versions['node']}`);
  const lines = [...kinds].map(([kind, of]) => {
    const names = kinds.size === 1 ? '' : ` (${of.map(([name]) => name).join(', ')})`;
    const dates = [...new Set(of.map(([, { date }]) => date))].toSorted();
    return `- ${kind}; ${dates.join(', ')}${names}`;
  });
  const busy = rows.filter(([, { busyBefore }]) => busyBefore > 0.15).map(([name]) => name);
  if (busy.length > 0) {
    lines.push(
      `- Other processes used the machine when these rows began: ${busy.join(', ')}. Their ratios are more reliable ` +
        'than their figures.',
    );
  }
  const versions = Object.entries(
    Object.assign({}, ...rows.map(([, row]) => row.versions)) as object,
  );
  lines.push(`- ${versions.map(([what, version]) => `${what} ${version}`).join(', ')}`);
  return lines.join('\n');
}
