import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAmount, Time } from './format.js';
import { ConnectionStatus, followEvents } from './live-updates.js';

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

const RETRY_MS = 2000;

const root = /** @type {HTMLElement} */ (document.getElementById('ledger'));
root.replaceChildren();
render(html`<${LedgerPage} />`, root);

function LedgerPage() {
  const [totals, setTotals] = useState(/** @type {Totals | null} */ (null));
  const [page, setPage] = useState(/** @type {Page | null} */ (null));
  const [lostSince, setLostSince] = useState(/** @type {Date | null} */ (null));
  const before = usePageCursor();
  useEffect(() => followEvents('/api/ledger/events', setTotals, setLostSince), []);
  // Each new entry changes the totals.
  useEffect(() => (totals === null ? undefined : loadPage(before, setPage)), [before, totals]);
  return html`
    ${totals && html`<${Totals} totals=${totals} />`}
    <${ConnectionStatus} lostSince=${lostSince} connecting=${totals === null} />
    ${page && html`<${Entries} page=${page} before=${before} />`}
  `;
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

/**
 * Loads a page of the ledger. Retries until it succeeds.
 *
 * @param {string} before
 * @param {(page: Page) => void} onPage
 * @returns {() => void} cancels the request and its retries
 */
function loadPage(before, onPage) {
  const abort = new AbortController();
  const { signal } = abort;
  const attempt = async () => {
    try {
      const query = before === '' ? '' : `?before=${before}`;
      const response = await fetch(`/api/ledger/page${query}`, { signal });
      if (!response.ok) throw new Error(`status ${response.status}`);
      const page = /** @type {Page} */ (await response.json());
      if (!signal.aborted) onPage(page);
    } catch {
      // The connection status above the table shows that the shop is not reachable.
      if (!signal.aborted) setTimeout(() => !signal.aborted && void attempt(), RETRY_MS);
    }
  };
  void attempt();
  return () => abort.abort();
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
