import { html } from 'htm/preact';
import { TableHead } from './card-table.js';
import { get } from './api.js';
import { Badge, Foreign, Time, counted } from './format.js';
import { Waiting, usePolled } from './polling.js';
import { auditLink, eventLink } from './route.js';

/** @typedef {import('./api.js').AuditEntry} AuditEntry */

/** How many entries the page shows at first, and after a click on "Show all". */
const FEW = 100;
const ALL = 1000;

/** The choices above the table. @type {Record<string, string>} */
const SHOWN = { all: 'All', actions: 'Actions', views: 'Views of payloads' };

/**
 * The page of the audit trail: what operators did with the console, newest first.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {number} props.acted number of actions performed
 */
export function AuditTrail({ params, acted }) {
  const show = Object.hasOwn(SHOWN, params.show ?? '') ? String(params.show) : 'all';
  const limit = params.limit === String(ALL) ? ALL : FEW;
  const { value, error } = usePolled(
    `${show} ${limit}`,
    /** @returns {Promise<import('./api.js').Audit>} */
    (signal) => get('audit', { show, limit }, signal),
    acted,
  );
  const entries = value?.entries ?? [];
  return html`
    <h1 tabindex="-1">Audit</h1>
    <p class="quiet note">
      What operators did and which payloads they viewed, in all processes, for 90 days. The log of
      the application contains the same (logger <code>PaymentsConsole</code>).
    </p>
    <nav class="shown" aria-label="Which entries">
      ${Object.entries(SHOWN).map(
        ([name, label]) =>
          html`<a
            href=${auditLink({ show: name === 'all' ? '' : name })}
            aria-current=${name === show ? 'true' : undefined}
            >${label}</a
          >`,
      )}
    </nav>
    ${
      error?.unavailable
        ? html`<p class="empty">
            <strong>The audit is not reachable.</strong> Actions and views are in the log of the
            application.
          </p>`
        : !value && html`<${Waiting} error=${error} />`
    }
    ${value && entries.length === 0 && html`<p class="empty"><strong>Nothing recorded yet.</strong></p>`}
    ${entries.length > 0 && html`<${Entries} entries=${entries} />`}
    ${
      entries.length > 0 &&
      html`<nav class="pages" aria-label="Pages">
        ${
          limit === FEW &&
          entries.length === FEW &&
          html`<a href=${auditLink({ show: show === 'all' ? '' : show, limit: String(ALL) })}
            >Show all</a
          >`
        }
        <span class="quiet">${counted(entries.length, 'entry')} on this page</span>
      </nav>`
    }
  `;
}

/** @param {{ entries: AuditEntry[] }} props */
function Entries({ entries }) {
  return html`<table class="cards audit" role="table">
    <${TableHead} titles=${['When', 'Who', 'What', 'Result']} />
    <tbody role="rowgroup">
      ${entries.map(
        ({ id, at, who, text, event, error }) =>
          html`<tr role="row" key=${id}>
            <td role="cell" class="when"><${Time} at=${at} /></td>
            <td role="cell" class="who">
              ${who === null ? html`<span class="quiet">unknown</span>` : html`<${Foreign} text=${who} />`}
            </td>
            <td role="cell" class="what">
              ${
                event === null
                  ? html`<${Foreign} text=${text} />`
                  : html`<a href=${eventLink(event)}><${Foreign} text=${text} /></a>`
              }
            </td>
            <td role="cell" class="result">
              ${
                error === null
                  ? html`<${Badge} state="done" />`
                  : html`<${Badge} state="failed">rejected or failed<//>
                      <${Foreign} text=${error} class="error" />`
              }
            </td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
