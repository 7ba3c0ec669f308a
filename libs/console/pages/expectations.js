import { html } from 'htm/preact';
import { TableHead } from './card-table.js';
import { csvAddress, get } from './api.js';
import { Badge, Foreign, Time, capped, counted, duration, visible } from './format.js';
import { ShortId, money } from './payment-fields.js';
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
  const next = value?.next ?? null;
  if (next !== null) trail.set(next, expectationsLink({ show, after }));
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
    <nav class="shown" aria-label="Which expectations">
      ${Object.entries(SHOWN).map(
        ([name, [label]]) =>
          html`<a
            href=${expectationsLink({ show: name })}
            aria-current=${name === show ? 'true' : undefined}
            class=${name === 'unknown' && numbers.unknown?.count ? 'overdue' : ''}
            >${label}${numbers[name] && ` (${capped(numbers[name])})`}</a
          >`,
      )}
    </nav>
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
    <nav class="pages" aria-label="Pages">
      ${
        after &&
        html`<a href=${expectationsLink({ show })}>First page</a>
          ${trail.has(after) && html`<a href=${trail.get(after)}>Previous page</a>`}`
      }
      ${
        next !== null &&
        html`<a href=${expectationsLink({ show, after: next })} rel="next">Next page</a>`
      }
      ${
        rows.length > 0 &&
        html`<a href=${csvAddress('expectations', query)} download>Download CSV</a>
          <span class="quiet">${counted(rows.length, 'expectation')} on this page</span>`
      }
    </nav>
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

const TITLES = ['Payment', 'State', 'Amount', 'Reason', 'Age', 'Next question', null];

/** @param {{ rows: Expectation[], ask: (action: import('./actions.js').Action) => void }} props */
function Rows({ rows, ask }) {
  return html`<table class="cards expectations" role="table">
    <${TableHead} titles=${TITLES} numbers=${['Amount']} />
    <tbody role="rowgroup">
      ${rows.map(
        (one) => html`<${Row} key=${`${one.company}\n${one.reference}`} one=${one} ask=${ask} />`,
      )}
    </tbody>
  </table>`;
}

/** @param {{ one: Expectation, ask: (action: import('./actions.js').Action) => void }} props */
function Row({ one, ask }) {
  const { company, reference, transactionId, state, createdAt, ageMs, nextPollAt } = one;
  return html`<tr role="row">
    <td role="cell" class="what">
      <a href=${paymentLink(company, reference)}><${Foreign} text=${reference} class="type" /></a
      >${' '}
      ${
        transactionId === null
          ? html`<small>no transaction id yet</small>`
          : transactionId !== reference &&
            html`<${ShortId} text=${transactionId} what="transaction" />`
      }
      ${company !== 'default' && html`<small>company <${Foreign} text=${company} /></small>`}
    </td>
    <td role="cell" class="state"><${State} one=${one} /></td>
    <td role="cell" class="amount number">${money(one)}</td>
    <td role="cell" class="reason"><${Reason} one=${one} /></td>
    <td role="cell" class="when" data-title="Age">
      <time datetime=${createdAt} title=${createdAt}>${duration(ageMs)}</time>
    </td>
    <td role="cell" class="when" data-title="Next question">
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
