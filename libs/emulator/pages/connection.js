import { html } from 'htm/preact';

/**
 * Says that the emulator can't be reached, or will not answer, as long as that is so.
 *
 * @param {{ trouble: import('./server.js').Trouble | undefined }} props
 */
export function Connection({ trouble }) {
  const since = trouble?.since.toLocaleTimeString(undefined, { hourCycle: 'h23' });
  return html`<div role="status" aria-live="polite">
    ${
      trouble &&
      html`<p class="problem">
        ${
          trouble.refused
            ? trouble.message
            : `The emulator is not reachable since ${since}; trying again. What is shown here may be out of date.`
        }
      </p>`
    }
  </div>`;
}

/** The way from page to page. `here` is the page that shows it. */
export function PageHead({ title, here, children }) {
  const link = (href, label) =>
    html`<a href=${href} aria-current=${here === href ? 'page' : undefined}>${label}</a>`;
  return html`<header class="head">
    <h1>${title}</h1>
    <nav aria-label="Pages">
      ${link('/emulator', 'Deliveries and faults')} ${link('/emulator/stk', 'STK push prompts')}
    </nav>
    ${children}
  </header>`;
}

/** Chooses a company; with `all`, an empty value is all of them. */
export function CompanyChoice({ companies, value, onChoose, all = false, label = 'Company' }) {
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

/** What went wrong with a button. */
export function Problem({ text }) {
  return text ? html`<p class="problem" role="alert">${text}</p>` : null;
}
