import { html, render } from 'htm/preact';
import { useState } from 'preact/hooks';
import { CompanySelect, ConnectionStatus, PageHeader, Problem } from './components.js';
import { ClockNotice, Time, formatAmount } from './format.js';
import { call, useAction, usePolling, withQuery } from './api.js';

const query = new URLSearchParams(location.search);
const digitsOf = (text) => text.replace(/[^\d+]/g, '');

/** The page that represents the customer's phone. The customer pays or cancels the STK push prompts on this page. */
function StkPage() {
  const { data: overview, error } = usePolling('overview');
  const [company, setCompany] = useState(query.get('company') ?? '');
  const [number, setNumber] = useState(query.get('phone') ?? '');
  const [only, setOnly] = useState(query.get('transaction') ?? '');
  const filter = { kind: 'stk-push', companyId: company, limit: 200 };
  const open = usePolling(withQuery('transactions', { ...filter, open: true }));
  const closed = usePolling(withQuery('transactions', { ...filter, open: false, limit: 5 }));
  const wanted = digitsOf(number);
  const prompts = (open.data ?? []).filter(
    ({ transactionId, phoneNumber = '' }) =>
      (only === '' || transactionId === only) && phoneNumber.includes(wanted),
  );
  const refresh = () => {
    void open.refresh();
    void closed.refresh();
  };
  return html`<div class="wide-page slim">
    <${PageHeader} current="stk" overview=${overview} />
    <${ConnectionStatus} error=${error} />
    ${overview && html`<${ClockNotice} overview=${overview} />`}
    <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
      ${
        overview?.companies.length > 1 &&
        html`<${CompanySelect}
          all
          companies=${overview.companies}
          value=${company}
          onChoose=${setCompany}
        />`
      }
      <label class="wide">
        Phone number
        <input
          type="tel"
          value=${number}
          placeholder="any number"
          onInput=${(event) => setNumber(event.currentTarget.value)}
        />
      </label>
      ${only !== '' && html`<button onClick=${() => setOnly('')}>Show all prompts</button>`}
    </form>
    <main class="phone tall" aria-label="The customer's phone, emulated">
      <div aria-live="polite" class="quiet">
        ${
          open.data === undefined
            ? 'Loading…'
            : `${prompts.length} ${prompts.length === 1 ? 'prompt' : 'prompts'} waiting`
        }
      </div>
      ${overview && open.data !== undefined && prompts.length === 0 && html`<${NoPrompts} filtered=${only + wanted + company !== ''} />`}
      ${
        overview &&
        prompts.map(
          (each) =>
            html`<${Prompt}
              key=${each.transactionId}
              push=${each}
              currency=${overview.currency}
              onClosed=${refresh}
            />`,
        )
      }
    </main>
    ${overview && html`<${Closed} pushes=${closed.data ?? []} currency=${overview.currency} />`}
  </div>`;
}

function NoPrompts({ filtered }) {
  return html`<p class="empty">
    ${
      filtered
        ? 'No prompt is waiting for this company, phone number or transaction.'
        : 'No prompt is waiting. Create an STK push on '
    }
    ${!filtered && html`<a href="/emulator?tab=payments">the page Payments</a>`}
    ${!filtered && ', or let the merchant’s application create one. It appears here automatically.'}
  </p>`;
}

function Prompt({ push, currency, onClosed }) {
  const { busy, problem, run } = useAction();
  const [pinProblem, setPinProblem] = useState(/** @type {string | undefined} */ (undefined));
  const { transactionId, amount, companyId, accountReference, externalReference } = push;
  const close = (action) =>
    run(async () => {
      await call('POST', `transactions/${encodeURIComponent(transactionId)}/${action}`);
    }).then(onClosed);
  // The PIN stays in the browser. The emulator does not check PINs.
  const pay = (event) => {
    event.preventDefault();
    const valid = /^\d{4}$/.test(event.currentTarget.pin.value);
    setPinProblem(valid ? undefined : 'Enter any four digits. Never use a real PIN.');
    if (valid) void close('complete');
  };
  const id = `pin-${transactionId}`;
  return html`<article class="message prompt">
    <h2>Pay ${formatAmount(amount, currency)} to ${companyId}?</h2>
    <p>
      Account <b>${accountReference}</b>${
        accountReference === externalReference ? '' : html`, reference <b>${externalReference}</b>`
      }
    </p>
    <p class="quiet">
      ${push.phoneNumber ?? 'no phone number given'} · <${Time} at=${push.createdAt} />
    </p>
    <form class="stack" onSubmit=${pay} novalidate>
      <label for=${id}>Enter PIN</label>
      <input
        id=${id}
        name="pin"
        type="password"
        inputmode="numeric"
        autocomplete="off"
        maxlength="4"
        aria-invalid=${pinProblem !== undefined}
      />
      <${Problem} text=${pinProblem ?? problem} />
      <button class="primary" disabled=${busy}>Pay</button>
      <button type="button" disabled=${busy} onClick=${() => close('fail')}>Cancel</button>
    </form>
  </article>`;
}

function Closed({ pushes, currency }) {
  if (pushes.length === 0) return null;
  return html`<section class="narrow" aria-labelledby="closed-title">
    <h2 id="closed-title">Last paid or cancelled prompts</h2>
    <ul class="payments">
      ${pushes.toReversed().map(
        (each) =>
          html`<li key=${each.transactionId}>
            <span class=${`state ${each.completedAt ? 'good' : 'bad'}`}>${each.status}</span>${' '}
            <b>${formatAmount(each.amount, currency)}</b> ${each.externalReference}${' '}
            <a href=${withQuery('/emulator', { tab: 'deliveries', search: each.transactionId })}
              >Deliveries</a
            >
          </li>`,
      )}
    </ul>
  </section>`;
}

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
page.replaceChildren();
render(html`<${StkPage} />`, page);
