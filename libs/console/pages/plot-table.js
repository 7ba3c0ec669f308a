import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { Time } from './format.js';

/** @typedef {import('./api.js').Minute} Minute */
/** @typedef {import('./plots.js').Line} Line */

/**
 * The data of a plot as a table, newest first, without minutes in which nothing happened.
 *
 * @param {object} props
 * @param {string} props.title
 * @param {readonly Line[]} props.lines
 * @param {Minute[]} props.activity
 * @param {(value: number) => string} props.show
 */
export function Minutes({ title, lines, activity, show }) {
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
 * The value of a minute as text.
 *
 * @param {Minute | undefined} minute
 * @param {Line['field']} field
 * @param {(value: number) => string} show
 */
export function valueOf(minute, field, show) {
  const value = minute?.[field] ?? null;
  return value === null ? '–' : show(value);
}
