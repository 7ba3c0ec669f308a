import { html } from 'htm/preact';
import { get } from './api.js';
import { Table } from './card-table.js';
import { FilterForm, TextField, TimeField, filterOf } from './filters.js';
import { Badge, Foreign, Time, counted } from './format.js';
import { Choices } from './list-links.js';
import { Waiting, usePolled } from './polling.js';
import { auditLink, eventLink } from './route.js';

/** @typedef {import('./api.js').AuditEntry} AuditEntry */

/** How many entries the page shows at first, and after a click on "Show all". */
const FEW = 100;
const ALL = 1000;

/** The choices above the table. @type {Record<string, string>} */
const SHOWN = { all: 'All', actions: 'Actions', views: 'Views of payloads' };

/** The words for the outcome of an action. @type {Record<AuditEntry['outcome'], string>} */
const RESULTS = { done: 'done', failed: 'rejected or failed', unknown: 'result unknown' };

const FILTERS = ['who', 'from', 'to'];

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
  const filter = filterOf(params, FILTERS);
  const { value, error } = usePolled(
    JSON.stringify([show, limit, filter]),
    /** @returns {Promise<import('./api.js').Audit>} */
    (signal) => get('audit', { show, limit, ...filter }, signal),
    acted,
  );
  const entries = value?.entries ?? [];
  const names = [...new Set(entries.map(({ who }) => who ?? 'unknown'))];
  /** @param {Record<string, string>} [others] */
  const link = (others) => auditLink({ show: show === 'all' ? '' : show, ...others });
  return html`
    <h1 tabindex="-1">Audit</h1>
    <p class="quiet note">
      What operators did and which payloads they viewed, in all processes, for 90 days. The log of
      the application contains the same (logger <code>PaymentsConsole</code>).
    </p>
    <${Choices}
      label="Which entries"
      choices=${Object.entries(SHOWN)}
      shown=${show}
      link=${(/** @type {string} */ name) => auditLink({ ...filter, show: name === 'all' ? '' : name })}
    />
    <${FilterForm}
      params=${params}
      names=${FILTERS}
      onFilter=${(/** @type {Record<string, string>} */ given) => {
        location.hash = link(given);
      }}
    >
      <${TextField} label="Who" name="who" suggestions=${names} />
      <${TimeField} label="From" name="from" />
      <${TimeField} label="Before" name="to" />
    <//>
    ${
      error?.unavailable
        ? html`<p class="empty">
            <strong>The audit is not reachable.</strong> Actions and views are in the log of the
            application.
          </p>`
        : !value && html`<${Waiting} error=${error} />`
    }
    ${value && entries.length === 0 && html`<p class="empty"><strong>${Object.keys(filter).length > 0 ? 'No entry matches.' : 'Nothing recorded yet.'}</strong></p>`}
    ${value?.comparedFrom && html`<p class="quiet note">Only the newest 1,000 entries were compared: those since <${Time} at=${value.comparedFrom} />.</p>`}
    ${entries.length > 0 && html`<${Entries} entries=${entries} />`}
    ${
      entries.length > 0 &&
      html`<nav class="pages" aria-label="Pages">
        ${
          limit === FEW &&
          entries.length === FEW &&
          html`<a href=${link({ ...filter, limit: String(ALL) })}>Show all</a>`
        }
        <span class="quiet">${counted(entries.length, 'entry')} on this page</span>
      </nav>`
    }
  `;
}

/** @param {{ entries: AuditEntry[] }} props */
function Entries({ entries }) {
  return html`<${Table} class="cards audit" titles=${['When', 'Who', 'What', 'Result']}>
    ${entries.map(
      ({ id, at, who, text, event, outcome, error }) =>
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
            <${Badge} state=${outcome}>${RESULTS[outcome]}<//>
            ${error !== null && html`${' '}<${Foreign} text=${error} class="error" />`}
            ${
              outcome === 'unknown' &&
              html`${' '}<small class="quiet"
                  >The action still runs, or its process ended before it stored the result. Check
                  whether the action took effect before you repeat it.</small
                >`
            }
          </td>
        </tr>`,
    )}
  <//>`;
}
