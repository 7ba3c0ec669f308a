import { html } from 'htm/preact';
import { Table } from './card-table.js';
import { useEffect } from 'preact/hooks';
import { get } from './api.js';
import { Badge, Time, counted } from './format.js';
import { PaymentCells, money, severalCompanies } from './payment-fields.js';
import { paymentsOf, stateOf } from './payment-state.js';
import { Waiting, usePolled } from './polling.js';
import { eventLink, paymentLink } from './route.js';

/** @typedef {import('./payment-state.js').Payment} Payment */

const LIMIT = 50;

/**
 * The payments that a search finds. If there is only one payment, its page opens.
 *
 * @param {object} props
 * @param {string} props.text
 * @param {import('./api.js').Overview} props.overview
 */
export function SearchResults({ text, overview: { expectations, stats } }) {
  const { value: found, error } = usePolled(`search ${text}`, async (signal) => {
    const query = { search: text, limit: LIMIT };
    /** @type {[import('./api.js').EventPage, import('./api.js').ExpectationPage]} */
    const [events, expected] = await Promise.all([
      get('events', query, signal),
      expectations && text.length <= 255
        ? get('expectations', query, signal)
        : { expectations: [], next: null },
    ]);
    const more = events.next !== null || expected.next !== null;
    return { payments: paymentsOf({ ...events, ...expected }), more };
  });
  const [only, second] = found?.payments ?? [];
  useEffect(() => {
    if (found && !found.more && only && !second) location.replace(linkOf(only));
  }, [found]);
  return html`<h1 tabindex="-1">Search</h1>
    ${!found && html`<${Waiting} error=${error} />`}
    ${
      found?.payments.length === 0 &&
      html`<p class="empty">
        <strong>No payment matches.</strong> The search finds payments by the start of their
        reference or of an event id, by their whole transaction id, and by their exact amount. A
        payment that was only requested is not found by its amount, because only events contain the
        amount.
      </p>`
    }
    ${
      found &&
      found.payments.length > 0 &&
      html`<p class="quiet note">
          ${found.more ? `The newest ${found.payments.length} payments that match. Enter more characters to see others.` : `${counted(found.payments.length, 'payment')} found.`}
        </p>
        <${Payments} payments=${found.payments} paused=${stats.paused} />`
    }`;
}

/**
 * A list of payments, each with its state.
 *
 * @param {{ payments: readonly Payment[], paused: readonly string[] }} props
 */
export function Payments({ payments, paused }) {
  const companies = severalCompanies(payments);
  const titles = ['Payment', ...companies, 'State', 'Amount', 'Last change'];
  return html`<${Table} class="cards payments" titles=${titles} numbers=${['Amount']}>
    ${payments.map(
      (payment) =>
        html`<${Row}
          key=${linkOf(payment)}
          payment=${payment}
          paused=${paused}
          companies=${companies}
        />`,
    )}
  <//>`;
}

/** @param {{ payment: Payment, paused: readonly string[], companies: string[] }} props */
function Row({ payment, paused, companies }) {
  const { company, transaction, reference, events, expectation } = payment;
  const { badge, label, text } = stateOf(payment, paused);
  const priced = events.find(({ amount }) => amount !== null);
  const at = events[0]?.receivedAt ?? expectation?.lastPoll?.at ?? expectation?.createdAt;
  return html`<tr role="row">
    <${PaymentCells}
      company=${company}
      reference=${reference}
      transaction=${transaction}
      otherwise=${events[0]?.id}
      link=${linkOf(payment)}
      companies=${companies}
    />
    <td role="cell" class="state"><${Badge} state=${badge}>${label}<//> <span>${text}</span></td>
    <td role="cell" class="amount number">${priced && money(priced)}</td>
    <td role="cell" class="when">${at && html`<${Time} at=${at} />`}</td>
  </tr>`;
}

/** @param {Payment} payment */
function linkOf({ company, transaction, reference, events }) {
  const name = transaction ?? reference;
  return name === null
    ? eventLink({ company, id: events[0]?.id ?? '' })
    : paymentLink(company, name);
}
