import type { ContenderResult, Results, TableResult } from './results.ts';

/** Returns the cells of a table for the terminal and for Markdown. The first row is the header. */
export function cellsOf(table: TableResult): string[][] {
  const cpu = cpuColumn(table);
  const head = ['', table.unit, 'middle half', 'first / this', ...cpu.head];
  const rows = table.contenders.map((contender, index) => {
    const spread = contender.middleHalf.map(figure).join(' – ');
    const ratio = index === 0 ? '' : figure(contender.firstToThis);
    return [contender.name, figure(contender.median), spread, ratio, ...cpu.cell(contender)];
  });
  return [head, ...rows];
}

/**
 * Returns the column of the processor time per event or call, which is empty if no processor time was measured. Unlike
 * a rate, the processor time hardly depends on the other load of the machine.
 */
function cpuColumn({ contenders }: TableResult): {
  head: string[];
  cell: (one: ContenderResult) => string[];
} {
  const cpuMs = ({ more }: ContenderResult): number =>
    more?.['cpuMsPerEvent'] ?? more?.['cpuMsPerCall'] ?? NaN;
  if (contenders.every((one) => Number.isNaN(cpuMs(one)))) return { head: [], cell: () => [] };
  return { head: ['processor, µs'], cell: (one) => [figure(cpuMs(one) * 1000)] };
}

/** Returns the targets of all rows, their measured values, and whether each target was reached. */
export function targetCells(results: Results): string[][] {
  const rows = Object.entries(results).flatMap(([name, { tables }]) =>
    tables.flatMap((table) =>
      table.targets.map(({ text, subject, found, reached }) => [
        name,
        `${table.title}: ${subject}`,
        text,
        figure(found),
        reached ? 'reached' : '**not reached**',
      ]),
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

/** Formats a number with three significant digits and thousands separators. */
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
