import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import { get } from './api.js';
import { Badge, Foreign, Time, counted, visible } from './format.js';
import { ActionButton } from './permission.js';
import { Waiting, usePolled } from './polling.js';
import { eventLink, expectationsLink } from './route.js';

/** @typedef {import('./api.js').Expectation} Expectation */

const LIMIT = 50;

/**
 * The choices above the list, each with a label and the fields of its request.
 *
 * @type {Record<string, [string, object]>}
 */
const SHOWN = {
  '': ['All', {}],
  waiting: ['Waiting', { state: 'waiting' }],
  overdue: ['Overdue', { state: 'overdue' }],
  poll: ['Found by poll', { fulfilledBy: 'poll' }],
  contradictory: ['Contradictory', { contradictory: 'true' }],
};

/**
 * The list of expected payments, newest first.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {Map<string, string>} props.trail for the cursor of each page, the link to the previous page
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function ExpectationList({ params, trail, acted, ask }) {
  const { search = '', after = '' } = params;
  const show = Object.hasOwn(SHOWN, params.show ?? '') ? (params.show ?? '') : '';
  const query = {
    .../** @type {[string, object]} */ (SHOWN[show])[1],
    ...(search && { search }),
    ...(after && { after }),
    limit: LIMIT,
  };
  const { value, error } = usePolled(
    JSON.stringify(query),
    /** @returns {Promise<import('./api.js').ExpectationPage>} */
    (signal) => get('expectations', query, signal),
    acted,
  );

  const rows = value?.expectations ?? [];
  const next = value?.next ?? null;
  if (next !== null) trail.set(next, expectationsLink({ show, search, after }));
  const open = rows.filter(isOpen);
  return html`
    <h1 tabindex="-1">Expectations</h1>
    <p class="quiet note">
      Payments for which the application expects an event. While an expectation is waiting, the
      module asks the service about the payment on a schedule.
    </p>
    <nav class="shown" aria-label="Which expectations">
      ${Object.entries(SHOWN).map(
        ([name, [label]]) =>
          html`<a
            href=${expectationsLink({ show: name, search })}
            aria-current=${name === show ? 'true' : undefined}
            >${label}</a
          >`,
      )}
    </nav>
    <${Search} show=${show} search=${search} />
    ${!value && html`<${Waiting} error=${error} />`}
    ${value && rows.length === 0 && html`<${Nothing} filtered=${Boolean(show || search || after)} />`}
    ${
      open.length > 0 &&
      html`<p class="selection">
        <span class="quiet">${counted(open.length, 'open expectation')} on this page</span>
        <span class="buttons"
          ><${ActionButton} onClick=${() => ask({ kind: 'ask', expectations: open.map(idOf) })}>
            Ask now about all on this page …
          <//></span
        >
      </p>`
    }
    ${rows.length > 0 && html`<${Rows} rows=${rows} ask=${ask} />`}
    <nav class="pages" aria-label="Pages">
      ${
        after &&
        html`<a href=${expectationsLink({ show, search })}>First page</a>
          ${trail.has(after) && html`<a href=${trail.get(after)}>Previous page</a>`}`
      }
      ${
        next !== null &&
        html`<a href=${expectationsLink({ show, search, after: next })} rel="next">Next page</a>`
      }
      ${
        rows.length > 0 &&
        html`<span class="quiet">${counted(rows.length, 'expectation')} on this page</span>`
      }
    </nav>
  `;
}

/** @param {{ show: string, search: string }} props */
function Search({ show, search }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    if (field.current) field.current.value = search;
  }, [search]);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    location.hash = expectationsLink({ show, search: field.current?.value.trim() });
  };
  return html`<form class="filters" role="search" onSubmit=${submit}>
    <div class="search">
      <label for="search">Search</label>
      <input
        id="search"
        ref=${field}
        type="search"
        maxlength="255"
        placeholder="Reference or transaction id"
        aria-describedby="search-hint"
        autocomplete="off"
        spellcheck=${false}
      />
      <button type="submit">Search</button>
      <small id="search-hint">
        Finds expectations whose reference or transaction id begins with the text.
      </small>
    </div>
  </form>`;
}

/** @param {{ filtered: boolean }} props */
function Nothing({ filtered }) {
  if (filtered) {
    return html`<p class="empty">
      <strong>No expectation matches.</strong>${' '}
      <a href=${expectationsLink()}>Show all expectations</a>
    </p>`;
  }
  return html`<p class="empty">
    <strong>No payment is expected yet.</strong> Call${' '}
    <code>PaymentExpectations.expect()</code> before the request to the service.
  </p>`;
}

/** @param {{ rows: Expectation[], ask: (action: import('./actions.js').Action) => void }} props */
function Rows({ rows, ask }) {
  const titles = ['Reference', 'State', 'Last result', 'Polls', 'Created', 'Next poll'];
  return html`<table class="cards expectations" role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${titles.map((title) => html`<th role="columnheader" scope="col">${title}</th>`)}
        <th role="columnheader" scope="col"><span class="unseen">Action</span></th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (one) => html`<${Row} key=${`${one.company}\n${one.reference}`} one=${one} ask=${ask} />`,
      )}
    </tbody>
  </table>`;
}

/** @param {{ one: Expectation, ask: (action: import('./actions.js').Action) => void }} props */
function Row({ one, ask }) {
  const { company, reference, transactionId, state, lastPoll, contradiction, fulfilled } = one;
  return html`<tr role="row">
    <td role="cell" class="what">
      <${Foreign} text=${reference} class="type" />
      ${transactionId === null ? html`<small>no transaction id yet</small>` : html`<${Foreign} text=${transactionId} class="id" />`}
      ${company !== 'default' && html`<small>company <${Foreign} text=${company} /></small>`}
    </td>
    <td role="cell" class="state">
      <${Badge} state=${isUnpaid(one) ? 'unpaid' : state}>${state}<//>
      ${isUnpaid(one) && html`<small>not paid</small>`}
      ${
        fulfilled !== null &&
        html`<small
          >by ${fulfilled.by}:${' '}<a href=${eventLink({ company, id: fulfilled.eventId })}
            ><${Foreign} text=${fulfilled.eventType} /></a
        ></small>`
      }
      ${contradiction !== null && html`<${Badge} state="contradictory" />`}
    </td>
    <td role="cell" class="result">
      ${
        lastPoll === null
          ? html`<small>not polled yet</small>`
          : html`<span>${lastPoll.result}</span> <small><${Time} at=${lastPoll.at} /></small>`
      }
      ${lastPoll?.detail && lastPoll.detail !== contradiction && html`<${Foreign} text=${lastPoll.detail} class="detail" />`}
      ${contradiction !== null && html`<${Foreign} text=${contradiction} class="error" />`}
    </td>
    <td role="cell" class="polls" data-title="Polls">${one.polls}</td>
    <td role="cell" class="when" data-title="Created"><${Time} at=${one.createdAt} /></td>
    <td role="cell" class="when" data-title="Next poll">
      ${one.nextPollAt === null ? '–' : html`<${Time} at=${one.nextPollAt} />`}
    </td>
    <td role="cell" class="action">
      ${
        state !== 'cancelled' &&
        html`<${ActionButton}
          aria-label=${`Ask now … ${visible(reference)}`}
          onClick=${() => ask({ kind: 'ask', expectations: [idOf(one)] })}
        >
          Ask now …
        <//>`
      }
    </td>
  </tr>`;
}

/**
 * Whether an expectation is overdue, and the customer has not paid according to the last response of the service.
 *
 * @param {Expectation} one
 */
function isUnpaid({ state, lastPoll }) {
  return state === 'overdue' && lastPoll?.result === 'pending';
}

/** @param {Expectation} one */
function isOpen({ state }) {
  return state === 'waiting' || state === 'overdue';
}

/** @param {Expectation} one */
function idOf({ company, reference }) {
  return { company, reference };
}
