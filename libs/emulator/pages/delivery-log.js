import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { CompanySelect, ConnectionStatus } from './components.js';
import { Delivery } from './delivery.js';
import { usePolling, withQuery } from './api.js';

const STATES = ['waiting', 'sending', 'delivered', 'failed', 'dropped', 'skipped', 'cancelled'];

/**
 * The delivery log, newest first, in pages, filtered.
 *
 * @param {{ overview: any, filter: { company: string, state: string, search: string },
 *   onFilter: (change: object) => void }} props
 */
export function Deliveries({ overview, filter, onFilter }) {
  // The id of the last delivery on each earlier page of the log.
  const [path, setPath] = useState(/** @type {string[]} */ ([]));
  const { data, error, refresh } = usePolling(
    withQuery('deliveries/search', {
      companyId: filter.company,
      state: filter.state,
      search: filter.search,
      before: path.at(-1),
    }),
  );
  const { companies, log } = overview;
  const change = (part) => {
    setPath([]);
    onFilter(part);
  };
  const filtered = filter.company !== '' || filter.state !== '' || filter.search !== '';
  const page = data?.deliveries ?? [];
  return html`<section id="deliveries" aria-labelledby="deliveries-title">
    <h2 id="deliveries-title">Deliveries</h2>
    <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${CompanySelect}
        all
        companies=${companies}
        value=${filter.company}
        onChoose=${(company) => change({ company })}
      />
      <label>
        State
        <select
          value=${filter.state}
          onChange=${(event) => change({ state: event.currentTarget.value })}
        >
          <option value="">any</option>
          ${STATES.map(
            (state) =>
              html`<option key=${state} value=${state}>
                ${state} (${log.counts[state] ?? 0})
              </option>`,
          )}
        </select>
      </label>
      <label class="wide">
        Transaction, event or type
        <input
          type="search"
          value=${filter.search}
          placeholder="any part"
          onInput=${(event) => change({ search: event.currentTarget.value })}
        />
      </label>
    </form>
    <${ConnectionStatus} error=${error?.rejected ? error : undefined} />
    ${data === undefined && html`<p class="quiet">Loading…</p>`}
    ${data !== undefined && page.length === 0 && html`<${EmptyLog} ...${{ filtered, path, companies }} />`}
    <ol class="log">
      ${page.map(
        (delivery) =>
          html`<${Delivery}
            key=${delivery.id}
            delivery=${delivery}
            onChanged=${refresh}
            onSearch=${(search) => change({ search })}
          />`,
      )}
    </ol>
    <nav class="pager" aria-label="Pages of the log">
      ${path.length > 0 && html`<button onClick=${() => setPath([])}>Newest</button>`}
      ${
        data?.more &&
        html`<button onClick=${() => setPath([...path, page.at(-1).id])}>Older</button>`
      }
      <span class="quiet">The log keeps the last ${log.size} attempts.</span>
    </nav>
  </section>`;
}

/** Explains why the list is empty and what to do. */
function EmptyLog({ filtered, path, companies }) {
  if (path.length > 0) return html`<p class="empty">The log has no older deliveries.</p>`;
  if (filtered) return html`<p class="empty">No delivery matches. Clear the filter to see all.</p>`;
  const hasUrl = companies.some(({ webhook }) => webhook.url !== null);
  return html`<div class="empty">
    <p><b>No delivery yet.</b></p>
    ${
      !hasUrl &&
      html`<p>
        No company has a webhook URL. Start the emulator with <code>--webhook-url</code>, or
        send${' '} <code>PUT /emulator/companies/…/webhook</code>.
      </p>`
    }
    <p>
      Press “Send a test webhook”, or create a transaction and complete it:${' '}
      <code>transaction.completed</code> then appears here.
    </p>
  </div>`;
}
