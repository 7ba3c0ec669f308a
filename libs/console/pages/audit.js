import { html } from 'htm/preact';
import { verbs } from './actions.js';
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

/** @type {Record<AuditEntry['action'], string>} */
const ACTIONS = { ...verbs, view: 'View of a payload', export: 'Export', setup: 'Test webhook' };

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
      The last 500 actions and the last 500 views of payloads in this
      console${value && html`, since its process started at <${Time} at=${value.since} />`}. The log
      of the application contains all actions and views of all processes (logger${' '}
      <code>PaymentsConsole</code>).
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
    ${!value && html`<${Waiting} error=${error} />`}
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
    <thead role="rowgroup">
      <tr role="row">
        ${['When', 'Who', 'Action', 'Result'].map((title) => html`<th role="columnheader" scope="col" key=${title}>${title}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${entries.map(
        (entry) =>
          html`<tr role="row" key=${entry.id}>
            <td role="cell" class="when"><${Time} at=${entry.at} /></td>
            <td role="cell" class="who">
              ${entry.who === null ? html`<span class="quiet">unknown</span>` : html`<${Foreign} text=${entry.who} />`}
            </td>
            <td role="cell" class="what">
              <span class="type">${ACTIONS[entry.action]}</span>${' '}
              ${
                entry.event === null
                  ? html`<${Foreign} text=${entry.target} class="target" />`
                  : html`<a href=${eventLink(entry.event)}
                      ><${Foreign} text=${entry.event.id} class="id"
                    /></a>`
              }
            </td>
            <td role="cell" class="result"><${Result} entry=${entry} /></td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** @param {{ entry: AuditEntry }} props */
function Result({ entry: { error, result } }) {
  if (error !== null) {
    return html`<${Badge} state="failed">rejected or failed<//>
      <${Foreign} text=${error} class="error" />`;
  }
  return html`<${Badge} state="done" /> ${amountOf(result)}`;
}

/** @param {AuditEntry['result']} result */
function amountOf({ deliveries, events, polls, closed }) {
  if (polls !== undefined) return counted(polls, 'poll');
  if (closed !== undefined) return counted(closed, 'expectation');
  if (deliveries === undefined) return '';
  const of = events === undefined ? '' : ` of ${counted(events, 'event')}`;
  return `${counted(deliveries, 'delivery')}${of}`;
}
