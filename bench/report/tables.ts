import { median, medianOfPairs, quantile } from '../rounds/statistics.ts';
import { figure } from './figures.ts';
import type { Results, TableResult } from './results.ts';
import { valuesOf, verdict } from './verdict.ts';

/** A table's cells, the head first: for the terminal and for Markdown. */
export function cellsOf(table: TableResult): string[][] {
  const first = valuesOf(table, table.contenders[0]?.name ?? '');
  const cpu = cpuColumn(table);
  const head = ['', table.unit, 'middle half', 'first : this', ...cpu.head];
  const rows = table.contenders.map(({ name }, place) => {
    const values = valuesOf(table, name);
    const spread = `${figure(quantile(values, 0.25))} – ${figure(quantile(values, 0.75))}`;
    const ratio = figure(medianOfPairs(first, values, (a, b) => a / b));
    const beside = place === 0 ? '' : ratio;
    return [name, figure(median(values)), spread, beside, ...cpu.cell(table.contenders[place]!)];
  });
  return [head, ...rows];
}

type Measured = TableResult['contenders'][number];

/**
 * What a contender took of the processor for each event or call, where that was counted: unlike the rates, it
 * does not suffer from whoever else is at work.
 */
function cpuColumn({ contenders }: TableResult): {
  head: string[];
  cell: (one: Measured) => string[];
} {
  const cpuMs = ({ rounds }: Measured): number =>
    median(rounds.map(({ more }) => more?.['cpuMsPerEvent'] ?? more?.['cpuMsPerCall'] ?? NaN));
  if (contenders.every((one) => Number.isNaN(cpuMs(one)))) return { head: [], cell: () => [] };
  return { head: ['processor, µs'], cell: (one) => [figure(cpuMs(one) * 1000)] };
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
