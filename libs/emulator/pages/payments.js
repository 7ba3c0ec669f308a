import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { TabLink } from './address.js';
import { Problem } from './components.js';
import { Time, formatAmount } from './format.js';
import { call, useAction, usePolling, withQuery } from './api.js';

const KINDS = { 'checkout-invoice': 'checkout invoice', 'stk-push': 'STK push', payout: 'payout' };
const PAGE_SIZE = 10;

/** The newest payments of a company, and the form that creates one. */
export function Payments({ company, go, currency }) {
  const { companyId } = company;
  const [shown, setShown] = useState(PAGE_SIZE);
  // Requests one payment more than the page shows, to determine whether there are more.
  const { data, refresh } = usePolling(withQuery('transactions', { companyId, limit: shown + 1 }));
  const newest = (data ?? []).toReversed().slice(0, shown);
  return html`<div class="columns">
    <${Create} ...${{ company, currency }} onCreated=${refresh} />
    <section aria-labelledby="payments-title">
      <h2 id="payments-title">Payments of company ${companyId}</h2>
      ${data === undefined && html`<p class="quiet">Loading…</p>`}
      ${
        data?.length === 0 &&
        html`<div class="empty">
          <p><b>No payment yet.</b></p>
          <p>Create one with the form, or let the merchant’s application create one.</p>
        </div>`
      }
      <ul class="payments">
        ${newest.map(
          (payment) =>
            html`<${Payment}
              key=${payment.transactionId}
              ...${{ payment, go, currency }}
              onChanged=${refresh}
            />`,
        )}
      </ul>
      ${
        data?.length > shown &&
        html`<p><button onClick=${() => setShown(shown + 2 * PAGE_SIZE)}>Show more</button></p>`
      }
    </section>
  </div>`;
}

/**
 * The form that creates a payment. On a narrow screen, the form is closed at first, so that the list of payments is
 * visible.
 */
function Create({ company, currency, onCreated }) {
  const { busy, problem, run } = useAction();
  const [open] = useState(() => matchMedia('(min-width: 62rem)').matches);
  const create = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = [...new FormData(form)].filter(([, value]) => value !== '');
    const { companyId } = company;
    const body = { companyId, ...Object.fromEntries(given), amount: Number(form.amount.value) };
    await run(async () => {
      await call('POST', 'transactions', body);
      onCreated();
    });
  };
  return html`<details class="panel aside" open=${open}>
    <summary><h2>Create a payment</h2></summary>
    <form class="fields" onSubmit=${create}>
      <label class="whole">
        Kind
        <select name="kind">
          ${Object.entries(KINDS).map(([kind, name]) => html`<option value=${kind}>${name}</option>`)}
        </select>
      </label>
      <label
        >Amount in ${currency}
        <input name="amount" inputmode="decimal" defaultValue="1250" required
      /></label>
      <label
        >Reference <input name="externalReference" defaultValue="order-1" maxlength="256" required
      /></label>
      <label>Phone number <input name="phoneNumber" type="tel" placeholder="none" /></label>
      <label class="whole"
        >Return URL <input name="returnUrl" type="url" placeholder="none"
      /></label>
      <button class="primary whole" disabled=${busy}>Create</button>
    </form>
    <${Problem} text=${problem} />
  </details>`;
}

function Payment({ payment, go, currency, onChanged }) {
  const { busy, problem, run } = useAction();
  const { transactionId, kind, amount, externalReference, status, checkoutUrl } = payment;
  const { createdAt, completesAt, completedAt, failedAt } = payment;
  const open = completedAt === undefined && failedAt === undefined;
  const style = completedAt ? 'good' : failedAt ? 'bad' : '';
  const path = `transactions/${encodeURIComponent(transactionId)}`;
  const close = (action, body) =>
    run(async () => {
      await call('POST', `${path}/${action}`, body);
      onChanged();
    });
  return html`<li>
    <div class="payment">
      <b class="reference">${externalReference}</b>
      <b class="money">${formatAmount(amount, currency)}</b>
      <span class=${`state ${style}`}>${status}</span>
      <span class="quiet">
        ${KINDS[kind] ?? kind} · <${Time} at=${createdAt} />
        ${completesAt && html`<span> · completes at <${Time} at=${completesAt} /></span>`}
        ${failedAt && html`<span> · declined at <${Time} at=${failedAt} /></span>`}
      </span>
      <code class="id">${transactionId}</code>
      <p class="actions small">
        ${
          open &&
          html`<button disabled=${busy} onClick=${() => close('complete')}>Complete</button>
            <button disabled=${busy} onClick=${() => close('complete-later', { delayMs: 60_000 })}>
              Complete in 1 min
            </button>
            <button disabled=${busy} onClick=${() => close('fail')}>Decline</button>`
        }
        ${
          checkoutUrl &&
          html`<a href=${`/emulator/checkout/${encodeURIComponent(transactionId)}`}
            >Checkout page</a
          >`
        }
        ${
          kind === 'stk-push' &&
          open &&
          html`<a href=${withQuery('/emulator/stk', { transaction: transactionId })}>Prompt</a>`
        }
        <${TabLink}
          to=${{ tab: 'deliveries', company: '', state: '', search: transactionId }}
          go=${go}
        >
          Deliveries
        <//>
      </p>
    </div>
    <${Problem} text=${problem} />
  </li>`;
}
