import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { groupSize, grouped } from './activity.js';
import { Time, duration, number } from './format.js';
import { HEIGHT, dataOf, optionsOf } from './plot-options.js';
import { Minutes, valueOf } from './plot-table.js';

/** @typedef {import('./api.js').Minute} Minute */

/**
 * One line of a plot. In both color schemes, the line has the colour of its swatch in the key.
 *
 * @typedef {object} Line
 * @property {'received' | 'done' | 'failed' | 'dead' | 'p50Ms' | 'p95Ms'} field
 * @property {string} label
 * @property {boolean} [filled]
 * @property {boolean} [bars]
 */

/**
 * A plot, whose lines have the same unit.
 *
 * @typedef {object} PlotKind
 * @property {string} title
 * @property {readonly Line[]} lines
 * @property {(value: number) => string} show
 * @property {boolean} [log] whether the axis is logarithmic, which it is for times and not for counts
 */

/** @type {readonly PlotKind[]} */
const PLOTS = [
  {
    title: 'Events per minute',
    lines: [{ field: 'received', label: 'received', filled: true }],
    show: number,
  },
  {
    title: 'Deliveries per minute',
    lines: [
      { field: 'done', label: 'done' },
      { field: 'dead', label: 'dead', bars: true },
    ],
    show: number,
  },
  {
    title: 'Failed attempts per minute',
    lines: [{ field: 'failed', label: 'failed', bars: true }],
    show: number,
  },
  {
    title: 'Time from receipt to done',
    lines: [
      { field: 'p95Ms', label: 'p95' },
      { field: 'p50Ms', label: 'p50' },
    ],
    show: duration,
    log: true,
  },
];

/**
 * @param {object} props
 * @param {Minute[]} props.activity
 * @param {import('./api.js').RangeCounts} props.deliveries of the events that were received in the range
 * @param {string | null} props.completeFrom the time from which `activity` is complete; `null` if all of it is complete
 * @param {string} props.now
 * @param {string} props.range label of the time range of `activity`
 */
export function Plots({ activity, deliveries, completeFrom, now, range }) {
  const points = useMemo(() => grouped(activity), [activity]);
  const newest = /** @type {Minute} */ (activity.at(-1));
  const size = groupSize(activity.length);
  const endedAt = Date.parse(newest.startsAt) + 60_000;
  return html`<p class="until quiet">
      Closed minutes until${' '}<${Time} at=${new Date(endedAt).toISOString()} />. Later minutes are
      not counted yet. The plots count a delivery when it ends; the table above counts the
      deliveries of the events that were received in this
      time.${
        completeFrom &&
        html`${' '}Complete from${' '}<${Time} at=${completeFrom} />. For earlier minutes, only
          stored events among the 100,000 newest are counted.`
      }
    </p>
    <div class="plots">
      ${PLOTS.map(
        ({ title, lines, show, log = false }) =>
          html`<${Plot}
            key=${title}
            title=${`${title}${noteOf(log, size)}`}
            totals=${totalsOf(lines, activity, deliveries, show)}
            range=${range}
            lines=${lines}
            activity=${points}
            closed=${endedAt / 1000}
            until=${Date.parse(now) / 1000}
            show=${show}
            log=${log}
          />`,
      )}
    </div>`;
}

/**
 * Describes what a point of a plot shows if it covers several minutes.
 *
 * @param {boolean} times
 * @param {number} size in minutes
 */
function noteOf(times, size) {
  if (size === 1) return '';
  return times ? `, the slowest of ${size} minutes` : `, means of ${size} minutes`;
}

/**
 * Returns the totals of the range: sums of counts, and the percentiles of all deliveries in it.
 *
 * @param {readonly Line[]} lines
 * @param {Minute[]} activity
 * @param {import('./api.js').RangeCounts} deliveries
 * @param {(value: number) => string} show
 */
function totalsOf(lines, activity, deliveries, show) {
  const totals = lines.map(({ field, label }) => {
    if (field === 'p50Ms' || field === 'p95Ms') {
      const ms = deliveries[field];
      return `${label} ${ms === null ? '–' : show(ms)}`;
    }
    return `${show(activity.reduce((sum, minute) => sum + minute[field], 0))} ${label}`;
  });
  return totals.join(', ');
}

/**
 * A plot and the same data as text: a key with the values under the pointer (or of the newest minute), and a table.
 *
 * @param {object} props
 * @param {string} props.title
 * @param {string} props.totals
 * @param {string} props.range
 * @param {readonly Line[]} props.lines
 * @param {Minute[]} props.activity
 * @param {number} props.closed end of the last closed minute, in seconds
 * @param {number} props.until end of the axis, in seconds: the time after the last closed minute is not counted yet
 * @param {(value: number) => string} props.show
 * @param {boolean} props.log
 */
function Plot({ title, totals, range, lines, activity, closed, until, show, log }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const key = useRef(/** @type {HTMLUListElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  const end = useRef(until);
  end.current = until;
  const [pointed, setPointed] = useState(/** @type {number | null} */ (null));

  useLayoutEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current);
    /** @param {string} name */
    const colour = (name) => {
      const swatch = key.current?.querySelector(`.${name}`) ?? element;
      return getComputedStyle(swatch).color;
    };
    const width = element.clientWidth;
    const options = optionsOf({
      lines,
      show,
      log,
      width,
      colour,
      setPointed,
      until: () => end.current,
    });
    const made = new uPlot(options, dataOf(lines, activity, closed), element);
    plot.current = made;
    const size = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    size.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const repaint = () => made.redraw(true, true);
    scheme.addEventListener('change', repaint);
    return () => {
      scheme.removeEventListener('change', repaint);
      size.disconnect();
      made.destroy();
    };
  }, []);

  useEffect(
    () => plot.current?.setData(dataOf(lines, activity, closed)),
    [activity, closed, until],
  );

  const newestAt = activity.length - 1;
  const minute = activity[Math.min(pointed ?? newestAt, newestAt)];
  return html`<figure>
    <figcaption>
      ${title} <span class="totals">${range}: <b>${totals}</b></span>
    </figcaption>
    <div
      ref=${place}
      class="plot"
      role="img"
      aria-label=${`${title}: ${summary(lines, activity, show)}. ${range}: ${totals}`}
    ></div>
    <ul ref=${key} class="key">
      ${lines.map(
        ({ field, label }) =>
          html`<li key=${field}>
            <i class=${field}></i> ${label}${' '}
            <b>${valueOf(minute, field, show)}</b>
          </li>`,
      )}
      <li class="open"><i class="open"></i> not counted yet</li>
      <li class="at">${minute && html`<${Time} at=${minute.startsAt} />`}</li>
    </ul>
    <${Minutes} title=${title} lines=${lines} activity=${activity} show=${show} />
  </figure>`;
}

/**
 * @param {readonly Line[]} lines
 * @param {Minute[]} activity
 * @param {(value: number) => string} show
 */
function summary(lines, activity, show) {
  return lines
    .map(({ field, label }) => {
      const values = activity.map((minute) => minute[field] ?? 0);
      return `${label} at most ${show(Math.max(0, ...values))}`;
    })
    .join(', ');
}
