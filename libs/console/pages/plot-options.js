import uPlot from 'uplot';

/** @typedef {import('./api.js').Minute} Minute */
/** @typedef {import('./plots.js').Line} Line */

/** Size of a plot with its axes, in pixels. */
export const HEIGHT = 200;
const hour = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];
/** Ticks of a logarithmic time axis, in milliseconds. Each value has a short label. */
const STEPS = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000];

const { stepped, bars: barred } = /** @type {Required<uPlot.Series.PathBuilderFactories>} */ (
  uPlot.paths
);
/** Drawing styles whose steps and bars go from the start of a minute to its end. */
const asSteps = stepped({ align: 1 });
const asBars = barred({ align: 1, size: [1, Infinity] });

/**
 * @param {readonly Line[]} lines
 * @param {Minute[]} activity
 * @param {number} closed end of the last closed minute, in seconds
 * @returns {uPlot.AlignedData}
 */
export function dataOf(lines, activity, closed) {
  const times = activity.map(({ startsAt }) => Date.parse(startsAt) / 1000);
  // 0 has no logarithm: 0 ms is shown as 1 ms. A bar of height 0 would be a line on the axis.
  const values = lines.map(({ field, bars }) =>
    activity.map((minute) => {
      const value = minute[field];
      if (bars && value === 0) return null;
      return field.endsWith('Ms') && value !== null ? Math.max(1, value) : value;
    }),
  );
  // A minute is drawn from its start to the next time, so the newest minute needs an end.
  const ends = lines.map(({ field, bars }, line) =>
    bars || field.endsWith('Ms') ? null : (values[line]?.at(-1) ?? null),
  );
  return [[...times, closed], ...values.map((all, line) => [...all, ends[line] ?? null])];
}

/**
 * @param {object} props
 * @param {readonly Line[]} props.lines
 * @param {(value: number) => string} props.show
 * @param {boolean} props.log
 * @param {number} props.width
 * @param {(name: string) => string} props.colour
 * @param {(index: number | null) => void} props.setPointed
 * @param {() => number} props.until end of the axis, in seconds
 * @returns {uPlot.Options}
 */
export function optionsOf({ lines, show, log, width, colour, setPointed, until }) {
  const ink = () => colour('at');
  /** @type {uPlot.Axis} */
  const axis = {
    stroke: ink,
    grid: { stroke: () => faint(ink()), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
  /** @type {uPlot.Axis} */
  const counts = { size: 40, incrs: WHOLE };
  /** @type {uPlot.Axis} */
  const times = {
    size: 60,
    splits: (_plot, _axis, min, max) => STEPS.filter((step) => step >= min && step <= max),
    filter: (_plot, splits) => splits,
  };
  return {
    width,
    height: HEIGHT,
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { size: 6 } },
    scales: {
      x: { range: (_plot, min, max) => [min, Math.max(max, until())] },
      y: log
        ? { distr: 3, range: (_plot, min, max) => stepsAround(min, max) }
        : { range: (_plot, _min, max) => [0, Math.max(4, (max ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        values: (_plot, splits) => splits.map((second) => hour.format(second * 1000)),
      },
      {
        ...axis,
        ...(log ? times : counts),
        values: (_plot, splits) => splits.map((value) => (value === null ? '' : show(value))),
      },
    ],
    series: [
      {},
      ...lines.map(({ field, label, filled, bars }) => ({
        label,
        stroke: () => colour(field),
        ...((filled || bars) && { fill: () => faint(colour(field)) }),
        width: bars ? 1 : 1.5,
        points: log
          ? { size: 5, fill: () => colour(field), filter: isolatedPoints }
          : { show: false },
        ...(!log && { paths: bars ? asBars : asSteps }),
      })),
    ],
    hooks: {
      setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)],
      drawClear: [(plot) => hatch(plot, until(), ink())],
    },
  };
}

/**
 * Returns the points that are always drawn, because a minute between two empty minutes has no line to its neighbours.
 *
 * @param {uPlot} plot
 * @param {number} series
 * @param {boolean} show
 * @returns {number[] | null}
 */
function isolatedPoints(plot, series, show) {
  if (show) return null;
  const values = plot.data[series] ?? [];
  return [...values.keys()].filter(
    (at) => values[at] != null && values[at - 1] == null && values[at + 1] == null,
  );
}

/**
 * Hatches the time after the last closed minute, which is not counted yet.
 *
 * @param {uPlot} plot
 * @param {number} until in seconds
 * @param {string} colour
 */
function hatch(plot, until, colour) {
  const { ctx, data, bbox } = plot;
  const left = plot.valToPos(data[0].at(-1) ?? until, 'x', true);
  const width = plot.valToPos(until, 'x', true) - left;
  if (!(width >= 1)) return;
  const gap = 6 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, bbox.top, width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.globalAlpha = 0.5;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  for (let x = left - bbox.height; x < left + width; x += gap) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}

/** @param {string} colour as computed: `rgb(1, 2, 3)` */
function faint(colour) {
  return colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.22)');
}

/**
 * Returns the first and the last tick of the axis. All values are between these ticks, and every grid line has a label.
 *
 * @param {number | null} min
 * @param {number | null} max
 * @returns {[number, number]}
 */
function stepsAround(min, max) {
  const low = STEPS.findLast((step) => step <= (min ?? 10)) ?? 1;
  const high = STEPS.find((step) => step >= Math.max(max ?? 0, low * 100)) ?? STEPS.at(-1) ?? low;
  return [low, high];
}
