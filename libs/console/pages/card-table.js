import { html } from 'htm/preact';

/**
 * The head of a table with one row of titles.
 *
 * @param {object} props
 * @param {readonly (string | null)[]} props.titles of the columns; `null` for a column of buttons
 * @param {readonly string[]} [props.numbers] titles of the columns that contain numbers
 */
export function TableHead({ titles, numbers = [] }) {
  return html`<thead role="rowgroup">
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
  </thead>`;
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
  return html`<table class="cards plain" role="table" aria-label=${label}>
    <${TableHead} titles=${titles} />
    <tbody role="rowgroup">
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
    </tbody>
  </table>`;
}
