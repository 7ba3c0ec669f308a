import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAmount, Time } from './format.js';
import { ConnectionStatus, follow } from './live-updates.js';

/**
 * A recorded payment.
 *
 * @typedef {object} Entry
 * @property {string} transactionId
 * @property {string | null} reference
 * @property {number} amount
 * @property {string} recordedAt
 * @property {true} [unmatched]
 * @property {true} [foundByPoll]
 *
 * A page of the ledger, newest first.
 *
 * @typedef {object} Page
 * @property {Entry[]} entries
 * @property {string | null} next
 *
 * Sums of the ledger. A sum that is too large for JSON is `null`.
 *
 * @typedef {object} Totals
 * @property {number} payments
 * @property {number | null} amount
 * @property {{ payments: number, amount: number | null }} unmatched
 */

const root = /** @type {HTMLElement} */ (document.getElementById('ledger'));
root.replaceChildren();
render(html`<${LedgerPage} />`, root);

function LedgerPage() {
  const [newest, setNewest] = useState(/** @type {Page | null} */ (null));
  const [totals, setTotals] = useState(/** @type {Totals | null} */ (null));
  const [older, setOlder] = useState(/** @type {Page | null} */ (null));
  const [lostSince, setLostSince] = useState(/** @type {Date | null} */ (null));
  const before = usePageCursor();
  useEffect(() => follow('/api/ledger/page', setNewest, setLostSince), []);
  // Each new entry changes the newest page.
  useEffect(() => (newest === null ? undefined : load('/api/ledger/totals', setTotals)), [newest]);
  useEffect(() => {
    setOlder(null);
    return before === '' ? undefined : load(`/api/ledger/page?before=${before}`, setOlder);
  }, [before]);
  const page = before === '' ? newest : older;
  return html`
    ${totals && html`<${Totals} totals=${totals} />`}
    <${ConnectionStatus} lostSince=${lostSince} connecting=${newest === null} />
    ${page && html`<${Entries} page=${page} before=${before} />`}
  `;
}

/**
 * Requests a value once it is reachable.
 *
 * @template T
 * @param {string} url
 * @param {(value: T) => void} onValue
 * @returns {() => void} ends the requests
 */
function load(url, onValue) {
  const end = follow(url, (/** @type {T} */ value) => {
    end();
    onValue(value);
  });
  return end;
}

/** Returns the cursor in the address, after `#before=`, or '' for the newest page. */
function usePageCursor() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener('hashchange', update);
    return () => removeEventListener('hashchange', update);
  }, []);
  return /^#before=(\d{1,18})$/.exec(hash)?.[1] ?? '';
}

/** @param {{ totals: Totals }} props */
function Totals({ totals: { payments, amount, unmatched } }) {
  return html`<dl class="tiles">
    <div>
      <dt>Payments</dt>
      <dd>${payments}</dd>
    </div>
    <div>
      <dt>Total amount</dt>
      <dd>${formatAmount(amount)}</dd>
    </div>
    <div class=${unmatched.payments > 0 ? 'attention' : ''}>
      <dt>Without an order</dt>
      <dd>
        ${unmatched.payments}${
          unmatched.payments > 0 &&
          html`${' '}<span class="quiet">${formatAmount(unmatched.amount)}</span>`
        }
      </dd>
    </div>
  </dl>`;
}

/** @param {{ page: Page, before: string }} props */
function Entries({ page: { entries, next }, before }) {
  if (entries.length === 0 && before === '') {
    return html`<p class="empty">
      There are no payments yet. <a href="/">Buy a product</a> and pay for it. The payment then
      appears here.
    </p>`;
  }
  return html`<table class="ledger">
      <caption>
        ${before === '' ? 'Newest first' : 'Older payments, newest first'}
      </caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Order</th>
          <th scope="col">Transaction</th>
          <th scope="col" class="number">Amount</th>
        </tr>
      </thead>
      <tbody>
        ${entries.map((entry) => html`<${Row} key=${entry.transactionId} entry=${entry} />`)}
      </tbody>
    </table>
    <nav class="pages" aria-label="Pages of the ledger">
      ${before !== '' && html`<a class="button plain" href="#">Newest</a>`}
      ${next !== null && html`<a class="button plain" href=${`#before=${next}`}>Older</a>`}
    </nav>`;
}

/** @param {{ entry: Entry }} props */
function Row({ entry: { amount, foundByPoll, recordedAt, reference, transactionId, unmatched } }) {
  const name = reference ?? 'no reference';
  return html`<tr class=${unmatched ? 'unmatched' : ''}>
    <td><${Time} at=${new Date(recordedAt)} /></td>
    <td>
      ${
        unmatched
          ? html`<span class="reference">${name}</span> <strong class="flag">no such order</strong>`
          : html`<a class="reference" href=${`/orders/${encodeURIComponent(name)}`}>${name}</a>`
      }
    </td>
    <td class="id">
      ${transactionId}
      ${foundByPoll && html` <span class="quiet">found by asking the service</span>`}
    </td>
    <td class="number">${formatAmount(amount)}</td>
  </tr>`;
}
