import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { toAmount } from './format.js';
import { follow, Link } from './live.js';

/**
 * An order, as the shop tells it.
 *
 * @typedef {object} Order
 * @property {string} reference
 * @property {number} amount
 * @property {'pending' | 'paid'} status
 * @property {string | null} checkoutUrl
 * @property {number} [amountPaid] told only where it is neither nothing nor the amount
 */

const place = /** @type {HTMLElement} */ (document.getElementById('order'));
const reference = place.dataset['reference'] ?? '';
place.replaceChildren();
render(html`<${OrderPage} />`, place);

function OrderPage() {
  const [order, setOrder] = useState(/** @type {Order | null} */ (null));
  const [since, setSince] = useState(/** @type {Date | null} */ (null));
  useEffect(() => {
    const url = `/orders/${encodeURIComponent(reference)}/events`;
    return follow(url, setOrder, setSince);
  }, []);
  const standing = order && standingOf(order);
  useEffect(() => {
    if (standing) document.title = `${standing.title}: order ${reference}`;
  }, [standing?.title]);
  return html`
    <h1>Order <span class="reference">${reference}</span></h1>
    ${order && standing && html`<${Standing} order=${order} standing=${standing} />`}
    <${Link} since=${since} waiting=${order === null} />
  `;
}

/**
 * How an order stands, said in full.
 *
 * @typedef {object} OrderStanding
 * @property {'waiting' | 'part' | 'paid' | 'over'} kind
 * @property {string} title
 * @property {number} paid
 * @property {number} rest what is still to be paid; below 0, what is too much
 */

/** @param {Order} order @returns {OrderStanding} */
function standingOf({ amount, amountPaid, status }) {
  const paid = amountPaid ?? (status === 'paid' ? amount : 0);
  const rest = (Math.round(amount * 100) - Math.round(paid * 100)) / 100;
  if (status === 'paid') {
    return rest < 0
      ? { kind: 'over', title: 'Paid, and more than that', paid, rest }
      : { kind: 'paid', title: 'Paid', paid, rest };
  }
  return paid > 0
    ? { kind: 'part', title: 'Paid in part', paid, rest }
    : { kind: 'waiting', title: 'Waiting for your payment', paid, rest };
}

/** @param {{ order: Order, standing: OrderStanding }} props */
function Standing({ order, standing }) {
  const { kind, title, paid, rest } = standing;
  return html`<section class="card order ${kind}">
    <p class="standing" role="status"><span class="sign" aria-hidden="true"></span>${title}</p>
    <dl class="sums">
      <dt>Amount</dt>
      <dd>${toAmount(order.amount)}</dd>
      <dt>Paid</dt>
      <dd>${toAmount(paid)}</dd>
      ${
        rest > 0 &&
        html`<dt>To be paid</dt>
          <dd>${toAmount(rest)}</dd>`
      }
      ${
        rest < 0 &&
        html`<dt>Too much</dt>
          <dd>${toAmount(-rest)}</dd>`
      }
    </dl>
    <${Next} order=${order} standing=${standing} />
  </section>`;
}

/** What the customer does next. @param {{ order: Order, standing: OrderStanding }} props */
function Next({ order, standing: { kind, rest } }) {
  if (kind === 'paid') return html`<p>Thank you. Your payment is in our books.</p>`;
  if (kind === 'over') {
    return html`<p>
      Thank you. ${toAmount(-rest)} more than the order's amount is in our books; ask us to have it
      back.
    </p>`;
  }
  if (kind === 'part') {
    return html`<p>
      A part of it is in our books. The payment page would ask for the whole amount again, so ask us
      how to pay the remaining ${toAmount(rest)}.
    </p>`;
  }
  const address = webAddress(order.checkoutUrl);
  if (address === null) {
    return html`<p>The payment service has given us no page to pay at yet. Your order stands.</p>
      <form method="post" action=${`/o/${encodeURIComponent(reference)}/checkout`}>
        <button>Ask for it again</button>
      </form>`;
  }
  return html`<p>
      <a class="button" href=${address} target="_blank" rel="noopener noreferrer">
        Pay ${toAmount(order.amount)}<span class="quiet"> in a new tab</span>
      </a>
    </p>
    <p class="hint">
      You have paid, and this page does not say so? We will confirm it when the payment service
      tells us, which may take a while. Don't pay twice: leave this page open, or come back to it
      later.
    </p>`;
}

/** A link to anything else could run as a script. @param {string | null} url */
function webAddress(url) {
  const parsed = url === null ? null : URL.parse(url);
  return parsed !== null && /^https?:$/.test(parsed.protocol) ? parsed.href : null;
}
