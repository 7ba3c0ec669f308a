import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { groupSize, grouped } from './activity.js';
import { Time, duration, number } from './format.js';
import { HEIGHT, dataOf, optionsOf } from './plot-options.js';

/** @typedef {import('./api.js').Minute} Minute */

/**
 * One line of a plot. Its colour is that of the swatch in the key, in either color scheme.
 *
 * @typedef {object} Line
 * @property {'received' | 'done' | 'failed' | 'dead' | 'p50Ms' | 'p95Ms'} field
 * @property {string} label
 * @property {boolean} [filled]
 * @property {boolean} [bars]
 */

/** @type {readonly Line[]} */
const COUNTS = [
  { field: 'received', label: 'received', filled: true },
  { field: 'done', label: 'done' },
  { field: 'failed', label: 'failed attempts', bars: true },
  { field: 'dead', label: 'dead', bars: true },
];
/** @type {readonly Line[]} */
const TIMES = [
  { field: 'p95Ms', label: 'p95' },
  { field: 'p50Ms', label: 'p50' },
];

/** Age from which the newest closed minute is late, in milliseconds. A minute is usually written 10 to 70 s after its end. */
const LATE_MS = 3 * 60_000;

/** @param {{ activity: Minute[], now: string }} props */
export function Plots({ activity, now }) {
  const points = useMemo(() => grouped(activity), [activity]);
  const newest = activity.at(-1);
  if (!newest) {
    return html`<p class="empty">
      <strong>No closed minute yet.</strong> Activity is stored once per minute. The first minute
      appears about two minutes after the start.
    </p>`;
  }
  const size = groupSize(activity.length);
  const endedAt = Date.parse(newest.startsAt) + 60_000;
  const lateMs = Date.parse(now) - endedAt;
  const means = size === 1 ? '' : `, means of ${size} minutes`;
  const worst = size === 1 ? '' : `, the slowest of ${size} minutes`;
  return html`<p class=${`until ${lateMs > LATE_MS ? 'late' : 'quiet'}`}>
      Closed minutes until${' '}<${Time} at=${new Date(endedAt).toISOString()} />.${' '}
      ${lateMs > LATE_MS && `That was ${duration(lateMs)} ago: later minutes are not stored yet.`}
    </p>
    <div class="plots">
      <${Plot}
        title=${`Events per minute${means}`}
        lines=${COUNTS}
        activity=${points}
        show=${number}
      />
      <${Plot}
        title=${`Time from receipt to done${worst}`}
        lines=${TIMES}
        activity=${points}
        show=${duration}
        log
      />
    </div>`;
}

/**
 * A plot and the same data as text: a key with the values under the pointer (or of the newest minute), and a table.
 *
 * @param {object} props
 * @param {string} props.title
 * @param {readonly Line[]} props.lines
 * @param {Minute[]} props.activity
 * @param {(value: number) => string} props.show
 * @param {boolean} [props.log]
 */
function Plot({ title, lines, activity, show, log = false }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const key = useRef(/** @type {HTMLUListElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  const [pointed, setPointed] = useState(/** @type {number | null} */ (null));

  useLayoutEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current);
    /** @param {string} name */
    const colour = (name) => {
      const swatch = key.current?.querySelector(`.${name}`) ?? element;
      return getComputedStyle(swatch).color;
    };
    const width = element.clientWidth;
    const options = optionsOf({ lines, show, log, width, colour, setPointed });
    const made = new uPlot(options, dataOf(lines, activity), element);
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

  useEffect(() => plot.current?.setData(dataOf(lines, activity)), [activity]);

  const newestAt = activity.length - 1;
  const minute = activity[Math.min(pointed ?? newestAt, newestAt)];
  return html`<figure>
    <figcaption>${title}</figcaption>
    <div
      ref=${place}
      class="plot"
      role="img"
      aria-label=${`${title}: ${summary(lines, activity, show)}`}
    ></div>
    <ul ref=${key} class="key">
      ${lines.map(
        ({ field, label }) =>
          html`<li key=${field}>
            <i class=${field}></i> ${label}${' '}
            <b>${valueOf(minute, field, show)}</b>
          </li>`,
      )}
      <li class="at">${minute && html`<${Time} at=${minute.startsAt} />`}</li>
    </ul>
    <${Minutes} title=${title} lines=${lines} activity=${activity} show=${show} />
  </figure>`;
}

/**
 * @param {object} props
 * @param {string} props.title
 * @param {readonly Line[]} props.lines
 * @param {Minute[]} props.activity
 * @param {(value: number) => string} props.show
 */
function Minutes({ title, lines, activity, show }) {
  const [open, setOpen] = useState(false);
  const busy = open
    ? activity.filter((minute) => lines.some(({ field }) => minute[field])).toReversed()
    : [];
  return html`<details
    onToggle=${(/** @type {any} */ { currentTarget }) => setOpen(currentTarget.open)}
  >
    <summary>As a table</summary>
    ${
      busy.length === 0
        ? html`<p class="quiet">No activity in this time.</p>`
        : html`<div
            class="scrolled"
            tabindex="0"
            role="region"
            aria-label=${`${title}, as a table`}
          >
            <table>
              <thead>
                <tr>
                  <th scope="col">Minute</th>
                  ${lines.map(({ label }) => html`<th scope="col" class="number">${label}</th>`)}
                </tr>
              </thead>
              <tbody>
                ${busy.map(
                  (minute) =>
                    html`<tr key=${minute.startsAt}>
                      <th scope="row"><${Time} at=${minute.startsAt} /></th>
                      ${lines.map(({ field }) => html`<td class="number">${valueOf(minute, field, show)}</td>`)}
                    </tr>`,
                )}
              </tbody>
            </table>
          </div>`
    }
  </details>`;
}

/**
 * @param {Minute | undefined} minute
 * @param {Line['field']} field
 * @param {(value: number) => string} show
 */
function valueOf(minute, field, show) {
  const value = minute?.[field] ?? null;
  return value === null ? '–' : show(value);
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
