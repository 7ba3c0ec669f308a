import { html } from 'htm/preact';

/**
 * The choices above a list.
 *
 * @param {object} props
 * @param {string} props.label accessible name
 * @param {[name: string, label: string][]} props.choices
 * @param {string} props.shown name of the current choice
 * @param {(name: string) => string} props.link
 * @param {string | undefined} [props.urgent] name of the choice that needs a person
 */
export function Choices({ label, choices, shown, link, urgent }) {
  return html`<nav class="shown" aria-label=${label}>
    ${choices.map(
      ([name, text]) =>
        html`<a
          href=${link(name)}
          aria-current=${name === shown ? 'true' : undefined}
          class=${name === urgent ? 'overdue' : ''}
          >${text}</a
        >`,
    )}
  </nav>`;
}

/**
 * The links below a list: to its other pages, and to its file.
 *
 * @param {object} props
 * @param {Map<string, string>} props.trail for the cursor of each page, the link to the previous page
 * @param {string} props.after cursor of the page; empty for the first page
 * @param {string | null} props.next cursor of the next page
 * @param {string} [props.nextText]
 * @param {(after: string) => string} props.link
 * @param {string} props.csv address of the file
 * @param {string | false} props.count how many rows the page has; `false` for an empty page
 */
export function PageLinks({ trail, after, next, nextText = 'Next page', link, csv, count }) {
  if (next !== null) trail.set(next, link(after));
  return html`<nav class="pages" aria-label="Pages">
    ${
      after &&
      html`<a href=${link('')}>First page</a>
        ${trail.has(after) && html`<a href=${trail.get(after)}>Previous page</a>`}`
    }
    ${next !== null && html`<a href=${link(next)} rel="next">${nextText}</a>`}
    ${count && html`<a href=${csv} download>Download CSV</a> <span class="quiet">${count}</span>`}
  </nav>`;
}
