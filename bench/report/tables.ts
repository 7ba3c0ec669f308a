import { median, medianOfPairs, quantile } from '../rounds/statistics.ts';
import { figure } from './figures.ts';
import type { Results, TableResult } from './results.ts';
import { valuesOf, verdict } from './verdict.ts';

/** A table's cells, the head first: for the terminal and for Markdown. */
export function cellsOf(table: TableResult): string[][] {
  const ours = valuesOf(table, table.contenders[0]?.name ?? '');
  const head = ['', table.unit, 'middle half', 'ours : this'];
  const rows = table.contenders.map(({ name }, place) => {
    const values = valuesOf(table, name);
    const spread = `${figure(quantile(values, 0.25))} – ${figure(quantile(values, 0.75))}`;
    const ratio = figure(medianOfPairs(ours, values, (a, b) => a / b));
    return [name, figure(median(values)), spread, place === 0 ? '' : ratio];
  });
  return [head, ...rows];
}

/** The targets of all rows: what was asked, what was found, whether that is enough. */
export function targetCells(results: Results): string[][] {
  const rows = Object.entries(results).flatMap(([name, { tables }]) =>
    tables.flatMap((table) =>
      table.targets.map((target) => {
        const { found, reached } = verdict(table, target);
        const subject = `${table.title}: ${target.subject}`;
        return [name, subject, target.text, figure(found), reached ? 'reached' : '**not reached**'];
      }),
    ),
  );
  return [['row', 'what', 'to be', 'found', ''], ...rows];
}

export function markdownTable(cells: readonly (readonly string[])[]): string {
  const [head = [], ...rows] = cells;
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export function terminalTable(cells: readonly (readonly string[])[]): string {
  const widths = (cells[0] ?? []).map((_cell, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  return cells.map((row) => `  ${row.map(pad).join('  ')}`.trimEnd()).join('\n');
}
