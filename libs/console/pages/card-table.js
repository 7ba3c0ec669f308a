import { html } from 'htm/preact';

/**
 * A table with one row of titles.
 *
 * @param {object} props
 * @param {string} props.class
 * @param {string} [props.label] accessible name
 * @param {readonly (string | null)[]} props.titles of the columns; `null` for a column of buttons
 * @param {readonly string[]} [props.numbers] titles of the columns that contain numbers
 * @param {unknown} [props.children] the rows
 */
export function Table({ class: name, label, titles, numbers = [], children }) {
  return html`<table class=${name} role="table" aria-label=${label}>
    <thead role="rowgroup">
      <tr role="row">
        ${titles.map(
          (title) =>
            html`<th
              role="columnheader"
              scope="col"
              key=${title}
              class=${title !== null && numbers.includes(title) ? 'number' : undefined}
            >
              ${title ?? html`<span class="unseen">Actions</span>`}
            </th>`,
        )}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${children}
    </tbody>
  </table>`;
}

/**
 * A table whose rows become cards on a narrow screen. The first cell names its row.
 *
 * @param {object} props
 * @param {string} props.label accessible name
 * @param {readonly (string | null)[]} props.titles of the columns; `null` for a column of buttons
 * @param {readonly { key: string, cells: readonly unknown[] }[]} props.rows
 */
export function CardTable({ label, titles, rows }) {
  return html`<${Table} class="cards plain" label=${label} titles=${titles}>
    ${rows.map(
      ({ key, cells }) =>
        html`<tr role="row" key=${key}>
          ${cells.map((cell, column) => {
            const title = (column > 0 && titles[column]) || undefined;
            return html`<td role=${column === 0 ? 'rowheader' : 'cell'} data-title=${title}>
              ${cell}
            </td>`;
          })}
        </tr>`,
    )}
  <//>`;
}
