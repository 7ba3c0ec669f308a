import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { Time, toAmount } from './format.js';
import { follow, Link } from './live.js';

/**
 * A payment that is booked.
 *
 * @typedef {object} Entry
 * @property {string} transactionId
 * @property {string | null} reference
 * @property {number} amount
 * @property {string} bookedAt
 * @property {true} [unmatched]
 *
 * A part of the ledger, newest first.
 *
 * @typedef {object} Page
 * @property {Entry[]} entries
 * @property {string | null} next
 *
 * What the ledger comes to. An amount beyond all numbers is `null`.
 *
 * @typedef {object} Totals
 * @property {number} payments
 * @property {number | null} amount
 * @property {{ payments: number, amount: number | null }} unmatched
 */

const AGAIN_MS = 2000;

const place = /** @type {HTMLElement} */ (document.getElementById('books'));
place.replaceChildren();
render(html`<${BooksPage} />`, place);

function BooksPage() {
  const [totals, setTotals] = useState(/** @type {Totals | null} */ (null));
  const [page, setPage] = useState(/** @type {Page | null} */ (null));
  const [since, setSince] = useState(/** @type {Date | null} */ (null));
  const before = useBefore();
  useEffect(() => follow('/books/events', setTotals, setSince), []);
  // Whatever is booked changes the totals.
  useEffect(() => (totals === null ? undefined : load(before, setPage)), [before, totals]);
  return html`
    ${totals && html`<${Sums} totals=${totals} />`}
    <${Link} since=${since} waiting=${totals === null} />
    ${page && html`<${Entries} page=${page} before=${before} />`}
  `;
}

/** Where the page begins that the address names after `#before=`; '' for the newest. */
function useBefore() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const look = () => setHash(location.hash);
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, []);
  return /^#before=(\d{1,18})$/.exec(hash)?.[1] ?? '';
}

/**
 * Loads a part of the ledger, and tries until it is there.
 *
 * @param {string} before
 * @param {(page: Page) => void} onPage
 * @returns {() => void} gives it up
 */
function load(before, onPage) {
  const abort = new AbortController();
  const { signal } = abort;
  const attempt = async () => {
    try {
      const query = before === '' ? '' : `?before=${before}`;
      const answer = await fetch(`/books/entries${query}`, { signal });
      if (!answer.ok) throw new Error(`answered ${answer.status}`);
      const page = /** @type {Page} */ (await answer.json());
      if (!signal.aborted) onPage(page);
    } catch {
      // The line above the table says that the shop is out of reach.
      if (!signal.aborted) setTimeout(() => !signal.aborted && void attempt(), AGAIN_MS);
    }
  };
  void attempt();
  return () => abort.abort();
}

/** @param {{ totals: Totals }} props */
function Sums({ totals: { payments, amount, unmatched } }) {
  return html`<dl class="tiles">
    <div>
      <dt>Payments</dt>
      <dd>${payments}</dd>
    </div>
    <div>
      <dt>Booked in all</dt>
      <dd>${toAmount(amount)}</dd>
    </div>
    <div class=${unmatched.payments > 0 ? 'attention' : ''}>
      <dt>Match no order</dt>
      <dd>
        ${unmatched.payments}${
          unmatched.payments > 0 && html`<span class="quiet">: ${toAmount(unmatched.amount)}</span>`
        }
      </dd>
    </div>
  </dl>`;
}

/** @param {{ page: Page, before: string }} props */
function Entries({ page: { entries, next }, before }) {
  if (entries.length === 0 && before === '') {
    return html`<p class="empty">
      Nothing is booked yet. <a href="/">Buy something from the shelf</a> and pay it: the payment
      appears here by itself.
    </p>`;
  }
  return html`<table class="ledger">
      <caption>
        ${before === '' ? 'Newest first' : 'Older bookings, newest first'}
      </caption>
      <thead>
        <tr>
          <th scope="col">Booked</th>
          <th scope="col">Order</th>
          <th scope="col">Transaction</th>
          <th scope="col" class="number">Amount</th>
        </tr>
      </thead>
      <tbody>
        ${entries.map((entry) => html`<${Row} key=${entry.transactionId} entry=${entry} />`)}
      </tbody>
    </table>
    <nav class="pages" aria-label="Parts of the ledger">
      ${before !== '' && html`<a class="button plain" href="#">Newest</a>`}
      ${next !== null && html`<a class="button plain" href=${`#before=${next}`}>Older</a>`}
    </nav>`;
}

/** @param {{ entry: Entry }} props */
function Row({ entry: { amount, bookedAt, reference, transactionId, unmatched } }) {
  const name = reference ?? 'no reference';
  return html`<tr class=${unmatched ? 'unmatched' : ''}>
    <td><${Time} at=${new Date(bookedAt)} /></td>
    <td>
      ${
        unmatched
          ? html`<span class="reference">${name}</span>
              <strong class="flag">matches no order</strong>`
          : html`<a class="reference" href=${`/o/${encodeURIComponent(name)}`}>${name}</a>`
      }
    </td>
    <td class="id">${transactionId}</td>
    <td class="number">${toAmount(amount)}</td>
  </tr>`;
}
