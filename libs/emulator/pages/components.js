import { html } from 'htm/preact';

/**
 * Shows the current polling error, if there is one.
 *
 * @param {{ error: import('./api.js').PollingError | undefined }} props
 */
export function ConnectionStatus({ error }) {
  const since = error?.since.toLocaleTimeString(undefined, { hourCycle: 'h23' });
  return html`<div role="status" aria-live="polite">
    ${
      error &&
      html`<p class="problem">
        ${
          error.rejected
            ? error.message
            : `The emulator has not been reachable since ${since}. The page keeps trying. Its data may be out of date.`
        }
      </p>`
    }
  </div>`;
}

/** The title of the page and the links to all pages. `current` is the path of this page. */
export function PageHeader({ title, current, children }) {
  const link = (href, label) =>
    html`<a href=${href} aria-current=${current === href ? 'page' : undefined}>${label}</a>`;
  return html`<header class="head">
    <h1>${title}</h1>
    <nav aria-label="Pages">
      ${link('/emulator', 'Deliveries and faults')} ${link('/emulator/stk', 'STK push prompts')}
    </nav>
    ${children}
  </header>`;
}

/** A selection of a company. With `all`, the empty value selects all companies. */
export function CompanySelect({ companies, value, onChoose, all = false, label = 'Company' }) {
  return html`<label>
    ${label}
    <select value=${value} onChange=${(event) => onChoose(event.currentTarget.value)}>
      ${all && html`<option value="">all</option>`}
      ${companies.map(
        ({ companyId }) => html`<option key=${companyId} value=${companyId}>${companyId}</option>`,
      )}
    </select>
  </label>`;
}

/** The error message of an action. */
export function Problem({ text }) {
  return text ? html`<p class="problem" role="alert">${text}</p>` : null;
}
