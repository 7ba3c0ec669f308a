import { html } from 'htm/preact';
import { Table } from './card-table.js';
import { csvAddress, get } from './api.js';
import { Badge, Foreign, Time, capped, counted, duration, visible } from './format.js';
import { Choices, PageLinks } from './list-links.js';
import { PaymentCells, money, severalCompanies } from './payment-fields.js';
import { ActionButton } from './permission.js';
import { Waiting, usePolled } from './polling.js';
import { eventLink, expectationsLink, paymentLink } from './route.js';

/** @typedef {import('./api.js').Expectation} Expectation */

const LIMIT = 50;

/**
 * The choices above the list, each with a label and the fields of its request.
 *
 * @type {Record<string, [string, object]>}
 */
const SHOWN = {
  '': ['All', {}],
  unknown: ['Unknown', { overdue: 'unknown' }],
  unpaid: ['Not paid', { overdue: 'unpaid' }],
  waiting: ['Waiting', { state: 'waiting' }],
  poll: ['Found by poll', { fulfilledBy: 'poll' }],
  contradictory: ['Contradictory', { contradictory: 'true' }],
  closed: ['Closed', { state: 'cancelled' }],
};

/**
 * The list of expected payments, newest first.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {import('./api.js').Overview['expectations']} props.counts
 * @param {Map<string, string>} props.trail for the cursor of each page, the link to the previous page
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function ExpectationList({ params, counts, trail, acted, ask }) {
  const { after = '' } = params;
  const show = Object.hasOwn(SHOWN, params.show ?? '') ? (params.show ?? '') : '';
  const query = {
    .../** @type {[string, object]} */ (SHOWN[show])[1],
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
  const open = rows.filter(isOpen);
  const overdue = rows.filter(({ state }) => state === 'overdue');
  /** @type {Record<string, import('./api.js').CappedCount | undefined>} */
  const numbers = {
    unknown: counts?.overdueUnknown,
    unpaid: counts?.overdueUnpaid,
    waiting: counts?.waiting,
  };
  return html`
    <h1 tabindex="-1">Expectations</h1>
    <p class="quiet note">
      Payments that the application expects. An overdue payment is “not paid” if the service says
      so. Otherwise, it is “unknown” whether it is paid, and somebody has to find out.
    </p>
    <${Choices}
      label="Which expectations"
      choices=${Object.entries(SHOWN).map(([name, [label]]) => [name, numbers[name] ? `${label} (${capped(numbers[name])})` : label])}
      shown=${show}
      link=${(/** @type {string} */ name) => expectationsLink({ show: name })}
      urgent=${numbers.unknown?.count ? 'unknown' : undefined}
    />
    ${!value && html`<${Waiting} error=${error} />`}
    ${value && rows.length === 0 && html`<${Nothing} filtered=${Boolean(show || after)} />`}
    ${
      open.length > 0 &&
      html`<p class="selection">
        <span class="quiet">${counted(open.length, 'open expectation')} on this page</span>
        <span class="buttons"
          ><${ActionButton} onClick=${() => ask({ kind: 'ask', expectations: open.map(idOf) })}>
            Ask now about all on this page …
          <//>
          ${
            overdue.length > 0 &&
            html`<${ActionButton}
              onClick=${() => ask({ kind: 'close', expectations: overdue.map(idOf) })}
            >
              Close all overdue on this page …
            <//>`
          }</span
        >
      </p>`
    }
    ${rows.length > 0 && html`<${Rows} rows=${rows} ask=${ask} />`}
    <${PageLinks}
      trail=${trail}
      after=${after}
      next=${value?.next ?? null}
      link=${(/** @type {string} */ cursor) => expectationsLink({ show, after: cursor })}
      csv=${csvAddress('expectations', query)}
      count=${rows.length > 0 && `${counted(rows.length, 'expectation')} on this page`}
    />
  `;
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
  const companies = severalCompanies(rows);
  const titles = ['Payment', ...companies, 'State', 'Amount', 'Reason', 'Age', 'Next poll', null];
  return html`<${Table} class="cards expectations" titles=${titles} numbers=${['Amount']}>
    ${rows.map(
      (one) =>
        html`<${Row}
          key=${`${one.company}\n${one.reference}`}
          one=${one}
          companies=${companies}
          ask=${ask}
        />`,
    )}
  <//>`;
}

/** @param {{ one: Expectation, companies: string[], ask: (action: import('./actions.js').Action) => void }} props */
function Row({ one, companies, ask }) {
  const { company, reference, transactionId, state, createdAt, ageMs, nextPollAt } = one;
  return html`<tr role="row">
    <${PaymentCells}
      company=${company}
      reference=${reference}
      transaction=${transactionId}
      link=${paymentLink(company, reference)}
      companies=${companies}
    />
    <td role="cell" class="state"><${State} one=${one} /></td>
    <td role="cell" class="amount number">${money(one)}</td>
    <td role="cell" class="reason"><${Reason} one=${one} /></td>
    <td role="cell" class="when" data-title="Age">
      <time datetime=${createdAt} title=${createdAt}>${duration(ageMs)}</time>
    </td>
    <td role="cell" class="when" data-title="Next poll">
      ${nextPollAt === null ? '–' : html`<${Time} at=${nextPollAt} />`}
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
      ${
        state === 'overdue' &&
        html`${' '}<${ActionButton}
            aria-label=${`Close … ${visible(reference)}`}
            onClick=${() => ask({ kind: 'close', expectations: [idOf(one)] })}
          >
            Close …
          <//>`
      }
    </td>
  </tr>`;
}

/** Whether somebody has to act: only an overdue payment of unknown outcome is colored. @param {{ one: Expectation }} props */
function State({ one: { state, lastPoll, contradiction } }) {
  const unpaid = lastPoll?.result === 'pending';
  return html`
    ${
      state === 'overdue'
        ? html`<${Badge} state=${unpaid ? 'unpaid' : 'overdue'}
            >${unpaid ? 'not paid' : 'unknown'}<//
          >`
        : html`<${Badge} state=${state}>${state === 'cancelled' ? 'closed' : state}<//>`
    }
    ${contradiction !== null && html`${' '}<${Badge} state="contradictory" />`}
  `;
}

/** Why an expectation is in its state, in one line. @param {{ one: Expectation }} props */
function Reason({ one: { company, lastPoll, polls, contradiction, fulfilled, cancelled } }) {
  if (contradiction !== null) return html`<${Foreign} text=${contradiction} class="error" />`;
  if (cancelled !== null) {
    const { at, by, note } = cancelled;
    const name = by === null ? 'the application' : html`<${Foreign} text=${by} />`;
    const time = html`<${Time} at=${at} />`;
    const why = note !== null && html`: <${Foreign} text=${note} />`;
    return html`closed by ${name}, ${time}${why}`;
  }
  if (fulfilled !== null) {
    return html`by ${fulfilled.by}:${' '}<a href=${eventLink({ company, id: fulfilled.eventId })}
        ><${Foreign} text=${fulfilled.eventType}
      /></a>`;
  }
  if (lastPoll === null) return html`<small>not asked yet</small>`;
  const { at, result, detail } = lastPoll;
  const pending = result === 'pending' ? 'the service says: pending' : 'no usable answer';
  return html`<${Foreign} text=${detail ?? pending} />
    <small> asked ${polls === 1 ? 'once' : `${polls} times`}, <${Time} at=${at} /></small>`;
}

/** @param {Expectation} one */
function isOpen({ state }) {
  return state === 'waiting' || state === 'overdue';
}

/** @param {Expectation} one */
function idOf({ company, reference }) {
  return { company, reference };
}
