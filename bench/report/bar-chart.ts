import type { RowResult, TableResult } from './results.ts';
import { figure } from './tables.ts';

const WIDTH = 760;
const LABELS = 270;
const VALUES = 90;
const BAR = 18;
const LINE = 28;
const HEAD = 34;

// An image cannot read the colours of its page, but it can read the colour scheme of the browser.
const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.value { font-variant-numeric: tabular-nums }
.bar { fill: #8b949e }
.first { fill: #0969da }
.spread { stroke: #1f2328; stroke-width: 1.5; fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .bar { fill: #6e7681 }
  .first { fill: #4493f8 }
  .spread { stroke: #e6edf3 }
}`;

/**
 * Returns the tables of a row as an SVG bar chart. A bar shows the median of a contender, and the whisker of the bar
 * shows the middle half.
 */
export function barChart({ title, tables }: RowResult): string {
  let y = 8;
  const parts = tables.map((table) => {
    const part = barsOf(table, y);
    y += HEAD + table.contenders.length * LINE + 12;
    return part;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
${parts.join('\n')}
</svg>
`;
}

function barsOf(table: TableResult, top: number): string {
  const maximum = Math.max(...table.contenders.map(({ middleHalf }) => middleHalf[1]));
  const x = (value: number): number =>
    LABELS + (maximum > 0 ? value / maximum : 0) * (WIDTH - LABELS - VALUES);
  const arrow = table.better === 'higher' ? 'more is better' : 'less is better';
  const title = `${table.title} (${table.unit}, ${arrow})`;
  const lines = [`<text class="title" x="0" y="${top + 14}">${escaped(title)}</text>`];
  table.contenders.forEach(({ name, median, middleHalf }, index) => {
    const y = top + HEAD + index * LINE - 8;
    const middle = y + BAR / 2;
    const [from, to] = [x(middleHalf[0]), x(middleHalf[1])];
    const kind = index === 0 ? 'bar first' : 'bar';
    lines.push(
      `<text x="0" y="${y + 13}">${escaped(name)}</text>`,
      `<rect class="${kind}" x="${LABELS}" y="${y}" width="${px(x(median) - LABELS)}" height="${BAR}" rx="2"/>`,
      `<path class="spread" d="M${px(from)} ${middle}H${px(to)}M${px(from)} ${middle - 4}v8M${px(to)} ${middle - 4}v8"/>`,
      `<text class="value" x="${px(Math.max(to, x(median)) + 8)}" y="${y + 13}">${figure(median)}</text>`,
    );
  });
  return lines.join('\n');
}

function px(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
