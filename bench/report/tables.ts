import { median, medianOfPairs, quantile } from '../rounds/statistics.ts';
import type { Results, TableResult } from './results.ts';
import { valuesOf, checkTarget } from './target-check.ts';

/** The cells of a table, header first, for the terminal and for Markdown. */
export function cellsOf(table: TableResult): string[][] {
  const first = valuesOf(table, table.contenders[0]?.name ?? '');
  const cpu = cpuColumn(table);
  const head = ['', table.unit, 'middle half', 'first / this', ...cpu.head];
  const rows = table.contenders.map(({ name }, index) => {
    const values = valuesOf(table, name);
    const spread = `${figure(quantile(values, 0.25))} – ${figure(quantile(values, 0.75))}`;
    const ratio = figure(medianOfPairs(first, values, (a, b) => a / b));
    const ratioCell = index === 0 ? '' : ratio;
    return [name, figure(median(values)), spread, ratioCell, ...cpu.cell(table.contenders[index]!)];
  });
  return [head, ...rows];
}

type Measured = TableResult['contenders'][number];

/**
 * The processor time of a contender for each event or call, if it was measured. Unlike the rates, it hardly depends on
 * the other load of the machine.
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

/** The targets of all rows, with the measured values and whether each was reached. */
export function targetCells(results: Results): string[][] {
  const rows = Object.entries(results).flatMap(([name, { tables }]) =>
    tables.flatMap((table) =>
      table.targets.map((target) => {
        const { found, reached } = checkTarget(table, target);
        const subject = `${table.title}: ${target.subject}`;
        return [name, subject, target.text, figure(found), reached ? 'reached' : '**not reached**'];
      }),
    ),
  );
  return [['row', 'measurement', 'target', 'measured', ''], ...rows];
}

/** The cells as a Markdown table. */
export function markdownTable(cells: readonly (readonly string[])[]): string {
  const [head = [], ...rows] = cells;
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** The cells as aligned columns. */
export function terminalTable(cells: readonly (readonly string[])[]): string {
  const widths = (cells[0] ?? []).map((_cell, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  return cells.map((row) => `  ${row.map(pad).join('  ')}`.trimEnd()).join('\n');
}

/** A number for readers: three significant digits, with thousands separators. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const digits = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(3, Math.max(0, 2 - digits));
  const rounded = digits > 2 ? Number(value.toPrecision(3)) : value;
  return rounded.toLocaleString('en', {
    minimumFractionDigits: Number.isInteger(value) ? 0 : decimals,
    maximumFractionDigits: decimals,
  });
}
