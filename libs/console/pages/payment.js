import { html } from 'htm/preact';
import { get } from './api.js';
import { DeliveryCard } from './event.js';
import { fact } from './event-facts.js';
import { Badge, Foreign, visible } from './format.js';
import { Copy } from './payload.js';
import { money } from './payment-fields.js';
import { paymentsOf, stateOf } from './payment-state.js';
import { ActionButton } from './permission.js';
import { usePolled } from './polling.js';
import { eventLink, paymentLink, searchLink } from './route.js';
import { Payments } from './search.js';
import { Timeline } from './timeline.js';

/** @typedef {import('./payment-state.js').Payment} Payment */

/**
 * The page of one payment, or the list of the payments with one reference.
 *
 * @param {object} props
 * @param {string} props.company
 * @param {string} props.payment the transaction id, or the reference
 * @param {'oldest' | 'newest'} props.order of the timeline
 * @param {import('./api.js').Overview & { askedAt: number }} props.overview
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function PaymentPage({ company, payment: name, order, overview, acted, ask }) {
  const { value: found, error } = usePolled(
    `payment ${company}\n${name}`,
    /** @returns {Promise<import('./api.js').Payment>} */
    (signal) => get('payment', { company, payment: name }, signal),
    acted,
  );
  const heading = html`<h1 tabindex="-1">Payment <${Foreign} text=${name} /></h1>`;
  if (!found) {
    const isMissing = error?.status === 404 || error?.status === 400;
    return html`${heading}
    ${
      isMissing
        ? html`<p class="empty">
            <strong>No such payment.</strong> ${visible(error.message)}${' '}
            <a href=${searchLink(name)}>Search for it</a>
          </p>`
        : html`<p class="quiet loading">Loading …</p>`
    }`;
  }
  const payments = paymentsOf(found);
  const [payment] = payments;
  const paused = overview.stats.paused.map(({ handler }) => handler);
  if (payment === undefined || payments.length > 1) {
    return html`${heading}
      <p class="note">${payments.length} payments have this reference.</p>
      <${Payments} payments=${payments} paused=${paused} />`;
  }
  const { badge, label, text } = stateOf(payment, paused);
  const open = payment.events.flatMap((event) =>
    event.deliveries
      .filter(({ state }) => state !== 'done')
      .map((delivery) => ({ event, delivery })),
  );
  const clockMs = Date.parse(overview.now) - overview.askedAt;
  const other = order === 'oldest' ? 'newest' : 'oldest';
  return html`
    ${heading}
    <p class="verdict"><${Badge} state=${badge}>${label}<//> <span>${text}</span></p>
    <${Warnings} payment=${payment} others=${found.others} ask=${ask} />
    <${Facts} payment=${payment} />
    ${
      open.length > 0 &&
      html`<section aria-labelledby="open">
        <h2 id="open">Deliveries that are not done</h2>
        ${open.map(
          ({ event, delivery }) =>
            html`<${DeliveryCard}
              key=${`${event.id}\n${delivery.handler}`}
              event=${event}
              delivery=${{ ...delivery, history: [] }}
              clockMs=${clockMs}
              ask=${ask}
            />`,
        )}
      </section>`
    }
    <section aria-labelledby="timeline">
      <div class="heading">
        <h2 id="timeline">Timeline</h2>
        <a href=${paymentLink(company, name, { order: other })}
          >${other === 'newest' ? 'Newest' : 'Oldest'} first</a
        >
      </div>
      <${Timeline} payment=${payment} order=${order} />
    </section>
  `;
}

/**
 * @param {object} props
 * @param {Payment} props.payment
 * @param {readonly string[]} props.others ids of other transactions with the same reference
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function Warnings({ payment: { company, reference, expectation }, others, ask }) {
  const isOpen = expectation?.state === 'waiting' || expectation?.state === 'overdue';
  const otherEvent = expectation?.otherEventId ?? null;
  return html`
    ${expectation?.contradiction && html`<p class="trouble">The last poll contradicts the inbox. <${Foreign} text=${expectation.contradiction} /></p>`}
    ${
      otherEvent !== null &&
      html`<p class="trouble">
        The customer may have paid twice: an${' '}
        <a href=${eventLink({ company, id: otherEvent })}>event of another transaction</a> has the
        same reference.
      </p>`
    }
    ${
      others.length > 0 &&
      reference !== null &&
      html`<p class="note">
        Other transactions have the same reference:${' '}
        <a href=${paymentLink(company, reference)}>show all ${others.length + 1}</a>
      </p>`
    }
    ${
      expectation !== null &&
      isOpen &&
      html`<p class="note">
        <${ActionButton}
          onClick=${() => ask({ kind: 'ask', expectations: [{ company, reference: expectation.reference }] })}
        >
          Ask the service now …
        <//>
        ${
          expectation.state === 'overdue' &&
          html`${' '}<${ActionButton}
              onClick=${() => ask({ kind: 'close', expectations: [{ company, reference: expectation.reference }] })}
            >
              Close …
            <//>`
        }
      </p>`
    }
  `;
}

/** @param {{ payment: Payment }} props */
function Facts({ payment: { company, transaction, reference, events } }) {
  const priced = events.find(({ amount }) => amount !== null);
  return html`<dl class="facts">
    ${reference !== null && fact('Reference', html`<${Foreign} text=${reference} /> <${Copy} text=${reference} what="reference" small=${true} />`)}
    ${priced !== undefined && fact('Amount', money(priced))}
    ${
      transaction !== null &&
      fact(
        'Transaction',
        html`<${Foreign} text=${transaction} class="id" />${' '}
          <${Copy} text=${transaction} what="transaction" small=${true} />`,
      )
    }
    ${fact('Company', html`<${Foreign} text=${company} />`)}
  </dl>`;
}
