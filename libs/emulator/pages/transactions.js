import { html } from 'htm/preact';
import { Problem } from './components.js';
import { Time, formatAmount } from './format.js';
import { call, useAction, usePolling, withQuery } from './api.js';

/** Sends a test webhook, and creates transactions. */
export function Actions({ company, onChanged }) {
  const { busy, problem, run } = useAction();
  const { companyId, webhook } = company;
  const test = () =>
    run(async () => {
      await call('POST', 'events', { companyId, eventType: 'webhook.test' });
      onChanged();
    });
  const create = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = [...new FormData(form)].filter(([, value]) => value !== '');
    const body = { companyId, ...Object.fromEntries(given), amount: Number(form.amount.value) };
    await run(async () => {
      await call('POST', 'transactions', body);
      onChanged();
    });
  };
  return html`<section aria-labelledby="actions-title">
    <h2 id="actions-title">Send and create</h2>
    <p>
      <button disabled=${busy} onClick=${test}>Send a test webhook</button>${' '}
      <span class="quiet">
        ${
          webhook.url === null
            ? 'This company has no webhook URL: the emulator sends nothing and logs the attempt as skipped.'
            : `to ${webhook.url}${webhook.active ? '' : ', which is inactive'}`
        }
      </span>
    </p>
    <form class="fields" onSubmit=${create}>
      <label>
        Kind
        <select name="kind">
          <option value="checkout-invoice">checkout invoice</option>
          <option value="stk-push">STK push</option>
          <option value="payout">payout</option>
        </select>
      </label>
      <label>Amount <input name="amount" inputmode="decimal" defaultValue="1250" required /></label>
      <label
        >Reference <input name="externalReference" defaultValue="order-1" maxlength="256" required
      /></label>
      <label>Phone number <input name="phoneNumber" type="tel" placeholder="none" /></label>
      <label>Return URL <input name="returnUrl" type="url" placeholder="none" /></label>
      <button class="primary" disabled=${busy}>Create a transaction</button>
    </form>
    <${Problem} text=${problem} />
  </section>`;
}

/** The newest transactions of a company, with buttons to complete and decline them and links to their pages. */
export function Transactions({ company, onSearch }) {
  const { data, refresh } = usePolling(
    withQuery('transactions', { companyId: company.companyId, limit: 20 }),
  );
  const newestFirst = (data ?? []).toReversed();
  return html`<section id="transactions" aria-labelledby="transactions-title">
    <h2 id="transactions-title">Transactions of ${company.companyId}</h2>
    ${data === undefined && html`<p class="quiet">Loading…</p>`}
    ${
      data?.length === 0 &&
      html`<p class="empty">
        No transaction yet. Create one above, or let the merchant's application create one.
      </p>`
    }
    <ul class="transactions">
      ${newestFirst.map(
        (each) =>
          html`<${Transaction}
            key=${each.transactionId}
            transaction=${each}
            onChanged=${refresh}
            onSearch=${onSearch}
          />`,
      )}
    </ul>
  </section>`;
}

function Transaction({ transaction, onChanged, onSearch }) {
  const { busy, problem, run } = useAction();
  const { transactionId, kind, amount, externalReference, status, checkoutUrl } = transaction;
  const { createdAt, completesAt, failedAt } = transaction;
  const open = transaction.completedAt === undefined && failedAt === undefined;
  const style = transaction.completedAt ? 'good' : failedAt ? 'bad' : '';
  const close = (action, body) =>
    run(async () => {
      await call('POST', `transactions/${encodeURIComponent(transactionId)}/${action}`, body);
      onChanged();
    });
  return html`<li>
    <p>
      <span class=${`state ${style}`}>${status}</span>${' '}<b>${formatAmount(amount)}</b>${' '}
      <span class="what">${externalReference}</span>${' '}
      <span class="quiet">
        ${kind} · <${Time} at=${createdAt} />
        ${completesAt && html`<span> · completes at <${Time} at=${completesAt} /></span>`}
        ${failedAt && html`<span> · declined at <${Time} at=${failedAt} /></span>`}
      </span>
    </p>
    <p class="actions">
      ${
        open &&
        html`<button disabled=${busy} onClick=${() => close('complete')}>Complete</button>
          <button disabled=${busy} onClick=${() => close('complete-later', { delayMs: 60_000 })}>
            Complete in one minute
          </button>
          <button disabled=${busy} onClick=${() => close('fail')}>Decline</button>`
      }
      ${
        checkoutUrl &&
        html`<a href=${`/emulator/checkout/${encodeURIComponent(transactionId)}`}>Checkout page</a>`
      }
      ${
        kind === 'stk-push' &&
        open &&
        html`<a href=${withQuery('/emulator/stk', { transaction: transactionId })}>Prompt</a>`
      }
      <button class="link" onClick=${() => onSearch(transactionId)}>Deliveries</button>
    </p>
    <${Problem} text=${problem} />
  </li>`;
}
