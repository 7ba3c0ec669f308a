import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { CompanySelect, ConnectionStatus, Problem } from './components.js';
import { Delivery } from './delivery.js';
import { call, useAction, usePolling, withQuery } from './api.js';

const STATES = ['waiting', 'sending', 'delivered', 'failed', 'dropped', 'skipped', 'cancelled'];

/**
 * Returns the number of rows of a page. A phone shows fewer rows, so that the user need not scroll far to the end of
 * the list.
 */
const pageSize = () => (matchMedia('(max-width: 40rem)').matches ? 10 : 25);

/**
 * The delivery log in pages, newest first, with a filter and a button that sends a test webhook.
 *
 * @param {{ overview: any, company: any, address: import('./address.js').Address,
 *   replace: (change: object) => void, onSent: () => void }} props `company`: the sender of the test webhook
 */
export function Deliveries({ overview, company, address: filter, replace, onSent }) {
  const [limit] = useState(pageSize);
  // The id of the last delivery on each earlier page of the log.
  const [path, setPath] = useState(/** @type {string[]} */ ([]));
  const { data, error, refresh } = usePolling(
    withQuery('deliveries/search', {
      companyId: filter.company,
      state: filter.state,
      search: filter.search,
      before: path.at(-1),
      limit,
    }),
  );
  const { companies, log, currency } = overview;
  const change = (part) => {
    setPath([]);
    replace(part);
  };
  const filtered = filter.company !== '' || filter.state !== '' || filter.search !== '';
  const page = data?.deliveries ?? [];
  return html`<section id="deliveries" aria-labelledby="deliveries-title">
    <div class="title-row">
      <h2 id="deliveries-title">Deliveries</h2>
      <${TestWebhook}
        company=${company}
        onSent=${() => {
          onSent();
          void refresh();
        }}
      />
    </div>
    <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
      ${
        companies.length > 1 &&
        html`<${CompanySelect}
          all
          companies=${companies}
          value=${filter.company}
          onChoose=${(company) => change({ company })}
        />`
      }
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
        Reference, transaction, event or type
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
    ${
      page.length > 0 &&
      html`<div class="log-head" aria-hidden="true">
        <span>Time</span><span>State</span><span>Event</span><span>Reference</span>
        <span class="money">Amount</span><span>Attempt</span>
      </div>`
    }
    <ol class="log">
      ${page.map(
        (delivery) =>
          html`<${Delivery}
            key=${delivery.id}
            ...${{ delivery, currency, withCompany: companies.length > 1 }}
            linked=${filter.delivery === delivery.id}
            onLink=${(id) => replace({ delivery: id })}
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

/** A button that sends a test webhook to a company. */
function TestWebhook({ company: { companyId, webhook }, onSent }) {
  const { busy, problem, run } = useAction();
  const send = () =>
    run(async () => {
      await call('POST', 'events', { companyId, eventType: 'webhook.test' });
      onSent();
    });
  return html`<div class="test-webhook">
    <button disabled=${busy} onClick=${send}>Send a test webhook</button>
    <span class="quiet">
      ${
        webhook.url === null
          ? `Company ${companyId} has no webhook URL: the emulator sends nothing and logs the attempt as skipped.`
          : `of company ${companyId} to ${webhook.url}${webhook.active ? '' : ', which is inactive'}`
      }
    </span>
    <${Problem} text=${problem} />
  </div>`;
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
      Press “Send a test webhook”, or create a payment and complete it:${' '}
      <code>transaction.completed</code> then appears here.
    </p>
  </div>`;
}
