import { describe, expect, it } from '@jest/globals';
import { replaceMarked } from './markers.ts';
import { mergedTargets } from './performance-page.ts';
import { summarize } from './results.ts';
import { costsOf, sizeFor } from './sizing.ts';
import { cellsOf, figure, markdownTable, targetCells, terminalTable } from './tables.ts';

const measured = {
  title: 'Deliveries',
  unit: 'events/s',
  better: 'higher',
  contenders: ['ours', 'a <peer>'].map((name) => ({ name, measure: () => Promise.reject() })),
  targets: [
    { text: 'half', of: 'ratio', subject: 'ours', against: 'a <peer>', at: 'least', bound: 0.5 },
    { text: 'more', of: 'ratio', subject: 'ours', against: 'a <peer>', at: 'least', bound: 0.51 },
    {
      text: 'less',
      of: 'difference',
      subject: 'ours',
      against: 'a <peer>',
      at: 'most',
      bound: -1000,
    },
    { text: 'few', of: 'value', subject: 'ours', at: 'most', bound: 1199 },
  ],
} as const;
const ours = [{ value: 1000 }, { value: 1200 }, { value: 3000 }];
const peers = [{ value: 2000 }, { value: 2400 }, { value: 2000 }];
const table = summarize(measured, [ours, peers]);
const row = {
  title: 'Row',
  date: '2026-11-20',
  machine: 'one',
  busyBefore: 0,
  versions: {},
  tables: [table],
};

describe('the report', () => {
  it('the report replaces the text between the markers and keeps the text around them', () => {
    const page =
      'Before\n<!-- bench:a -->\nold\n<!-- /bench:a -->\nAfter <!-- bench:b --><!-- /bench:b -->';
    const filled = replaceMarked(page, (name, old) => `${name}: ${old}`);
    expect(filled).toBe(
      'Before\n<!-- bench:a -->\n\na: old\n\n<!-- /bench:a -->\nAfter <!-- bench:b -->\n\nb:\n\n<!-- /bench:b -->',
    );
  });

  it('the report keeps the targets of rows that were not run', () => {
    const old = '| row | |\n| --- | --- |\n| other | kept |\n| row | replaced |';
    const merged = mergedTargets({ row }, old);
    expect(merged).toContain(
      '| other | kept |\n| row | Deliveries: ours | half | 0.500 | reached |',
    );
    expect(merged).not.toContain('replaced');
  });

  it('the report shows the median and the middle half of each contender, and the median ratio of the first contender to every other one', () => {
    expect(cellsOf(table)).toEqual([
      ['', 'events/s', 'middle half', 'first / this'],
      ['ours', '1,200', '1,100 – 2,100', ''],
      ['a <peer>', '2,000', '2,000 – 2,200', '0.500'],
    ]);
  });

  it('the report shows the processor time of a contender if it was measured', () => {
    const counted = ours.map(({ value }) => ({ value, more: { cpuMsPerEvent: value / 4000 } }));
    const cells = cellsOf(summarize(measured, [counted, peers]));
    expect(cells.map((row) => row.at(-1))).toEqual(['processor, µs', '300', '–']);
  });

  it('the report compares the ratio, the difference or the value of a target with its bound', () => {
    expect(table.targets.map(({ text, found, reached }) => [text, found, reached])).toEqual([
      ['half', 0.5, true],
      ['more', 0.5, false],
      ['less', -1000, true],
      ['few', 1200, false],
    ]);
    expect(targetCells({ row }).map((cells) => cells.at(-1))).toEqual([
      '',
      'reached',
      '**not reached**',
      'reached',
      '**not reached**',
    ]);
  });

  it('the report formats numbers with three significant digits', () => {
    const written = [0, 0.12345, 1.5, 12.345, 123.4, 1234.5, 987_654, 3, Number.NaN].map(figure);
    expect(written).toEqual(['0', '0.123', '1.50', '12.3', '123', '1,230', '988,000', '3', '–']);
  });

  it('the report formats tables for Markdown and for the terminal', () => {
    const cells = [
      ['', 'n'],
      ['a|b', '10'],
    ];
    expect(markdownTable(cells)).toBe('|  | n |\n| --- | --- |\n| a\\|b | 10 |');
    expect(terminalTable(cells)).toBe('        n\n  a|b  10');
  });
});

describe('the sizing', () => {
  const costs = { appCpuMs: 0.5, databaseCpuMs: 0.25, walBytes: 2000, storedBytes: 1000 };

  it('the sizing loads each core to at most half, and has at least two instances', () => {
    expect(sizeFor(10, costs)).toMatchObject({ instances: 2, databaseCores: 1, connections: 26 });
    expect(sizeFor(10_000, costs)).toMatchObject({
      instances: 10,
      databaseCores: 5,
      connections: 130,
      walMbPerSecond: 20,
      diskGb: 6048,
    });
  });

  it('the sizing shows no costs if one of the costs was not measured', () => {
    expect(costsOf({ row })).toBeNull();
  });
});
