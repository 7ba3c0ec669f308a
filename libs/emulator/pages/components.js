import { html } from 'htm/preact';
import { TABS, TabLink } from './address.js';

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

/**
 * The name of the emulator, and the links to all pages and tabs. `current` is the name of the current tab, or `stk` on
 * the page of STK push prompts. If `go` is given, a click on a tab does not load the page again.
 */
export function PageHeader({ current, company = '', go, overview }) {
  return html`<header class="head">
    <h1>Payments emulator</h1>
    ${overview && html`<span class="quiet host">${overview.environment} host</span>`}
    <a class="stk" href="/emulator/stk" aria-current=${current === 'stk' ? 'page' : undefined}
      >STK push prompts</a
    >
    <nav class="tabs" aria-label="Tabs">
      ${Object.entries(TABS).map(
        ([tab, title]) =>
          html`<${TabLink}
            key=${tab}
            go=${go}
            to=${{ tab, company }}
            aria-current=${current === tab ? 'page' : undefined}
            >${title}<//
          >`,
      )}
    </nav>
  </header>`;
}

/** A selection field for a company. If `all` is set, the field also offers all companies, with the empty value. */
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
