import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAmount } from './format.js';
import { ConnectionStatus, follow } from './live-updates.js';

/**
 * An order, as the API returns it.
 *
 * @typedef {object} Order
 * @property {string} reference
 * @property {number} amount
 * @property {'pending' | 'paid' | 'declined' | 'overdue'} status
 * @property {string | null} checkoutUrl
 * @property {true} [foundByPoll] present if the shop found the payment by asking the service
 * @property {number} [amountPaid] present only if it is neither 0 nor the amount
 *
 * The status of an order for the customer.
 *
 * @typedef {object} PaymentStatus
 * @property {'waiting' | 'partial' | 'paid' | 'overpaid' | 'declined' | 'overdue'} kind
 * @property {string} title
 * @property {number} paid
 * @property {number} due the amount still to pay; negative if the order is overpaid
 */

const root = /** @type {HTMLElement} */ (document.getElementById('order'));
const reference = root.dataset['reference'] ?? '';
root.replaceChildren();
render(html`<${OrderPage} />`, root);

function OrderPage() {
  const [order, setOrder] = useState(/** @type {Order | null} */ (null));
  const [lostSince, setLostSince] = useState(/** @type {Date | null} */ (null));
  useEffect(() => {
    const url = `/api/orders/${encodeURIComponent(reference)}`;
    return follow(url, setOrder, setLostSince);
  }, []);
  const status = order && paymentStatus(order);
  useEffect(() => {
    if (status) document.title = `${status.title}: order ${reference}`;
  }, [status?.title]);
  return html`
    <h1>Order <span class="reference">${reference}</span></h1>
    ${order && status && html`<${OrderCard} order=${order} status=${status} />`}
    <${ConnectionStatus} lostSince=${lostSince} connecting=${order === null} />
  `;
}

/** @param {Order} order @returns {PaymentStatus} */
function paymentStatus({ amount, amountPaid, foundByPoll, status }) {
  const paid = amountPaid ?? (status === 'paid' ? amount : 0);
  const due = (Math.round(amount * 100) - Math.round(paid * 100)) / 100;
  if (status === 'paid') {
    return due < 0
      ? { kind: 'overpaid', title: 'Overpaid', paid, due }
      : {
          kind: 'paid',
          title: foundByPoll ? 'Paid (found by asking the service)' : 'Paid',
          paid,
          due,
        };
  }
  if (paid > 0) return { kind: 'partial', title: 'Partly paid', paid, due };
  if (status === 'declined') return { kind: 'declined', title: 'Declined', paid, due };
  if (status === 'overdue') return { kind: 'overdue', title: 'Overdue', paid, due };
  return { kind: 'waiting', title: 'Waiting for confirmation', paid, due };
}

/** @param {{ order: Order, status: PaymentStatus }} props */
function OrderCard({ order, status }) {
  const { kind, title, paid, due } = status;
  return html`<div class="order-columns ${kind}">
    <section class="card order">
      <p class="status" role="status"><span class="icon" aria-hidden="true"></span>${title}</p>
      <${NextStep} order=${order} status=${status} />
    </section>
    <section class="card summary" aria-labelledby="summary">
      <h2 id="summary">Amounts</h2>
      <dl class="amounts">
        <dt>Order</dt>
        <dd>${formatAmount(order.amount)}</dd>
        <dt>Paid</dt>
        <dd>${formatAmount(paid)}</dd>
        ${
          due > 0 &&
          html`<dt>Still to pay</dt>
            <dd>${formatAmount(due)}</dd>`
        }
        ${
          due < 0 &&
          html`<dt>Overpaid</dt>
            <dd>${formatAmount(-due)}</dd>`
        }
      </dl>
    </section>
  </div>`;
}

/** Shows what the customer can do next. @param {{ order: Order, status: PaymentStatus }} props */
function NextStep({ order, status: { kind, due } }) {
  if (kind === 'paid') {
    return html`<p>Thank you. We have received your payment.</p>
      ${
        order.foundByPoll &&
        html`<p class="hint">
          The payment service did not notify us, so we asked it and found your payment.
        </p>`
      }`;
  }
  if (kind === 'overpaid') {
    return html`<p>
      Thank you. We have received ${formatAmount(-due)} too much. Please contact us for a refund.
    </p>`;
  }
  if (kind === 'partial') {
    return html`<p>
      We have received a part of the amount. The payment page would ask for the whole amount again,
      so please contact us to pay the remaining ${formatAmount(due)}.
    </p>`;
  }
  if (kind === 'declined') {
    return html`<p>The payment was declined, and you have not paid.</p>
      <p><a href="/">Order again</a></p>`;
  }
  if (kind === 'overdue') {
    return html`<p>
      We could not confirm a payment in time. This does not mean that it failed. If you have paid,
      please contact us and do not pay twice, because we check every such payment. If the payment is
      confirmed later, this page shows it.
    </p>`;
  }
  const address = webAddress(order.checkoutUrl);
  if (address === null) {
    return html`<p>
        We have your order, but not the address of its payment page yet. You can request the page
        again: this never creates a second payment.
      </p>
      <form method="post" action=${`/orders/${encodeURIComponent(reference)}/checkout`}>
        <button>Request the payment page again</button>
      </form>`;
  }
  return html`<p>
      <a class="button" href=${address} target="_blank" rel="noopener noreferrer">
        Pay ${formatAmount(order.amount)}<span class="quiet"> in a new tab</span>
      </a>
    </p>
    <p class="hint">
      If you have paid and this page does not show it yet, wait for the payment service to confirm
      the payment. This can take a while. Do not pay twice: keep this page open, or return to it
      later.
    </p>`;
}

/**
 * Returns the address if it is a web address, otherwise `null`. A link to another scheme could run a script.
 *
 * @param {string | null} url
 */
function webAddress(url) {
  const parsed = url === null ? null : URL.parse(url);
  return parsed !== null && /^https?:$/.test(parsed.protocol) ? parsed.href : null;
}
