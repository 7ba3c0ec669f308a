import { html, render } from 'htm/preact';
import { useState } from 'preact/hooks';
import { CompanyChoice, Connection, PageHead, Problem } from './connection.js';
import { Moment, formatAmount } from './moment.js';
import { call, useAction, useLive, withQuery } from './server.js';

const asked = new URLSearchParams(location.search);
const digitsOf = (text) => text.replace(/[^\d+]/g, '');

/** The customer's phone: STK push prompts as they come, to be paid or cancelled. */
function Phone() {
  const { data: overview, trouble } = useLive('overview');
  const [company, setCompany] = useState(asked.get('company') ?? '');
  const [number, setNumber] = useState(asked.get('phone') ?? '');
  const [only, setOnly] = useState(asked.get('transaction') ?? '');
  const query = { kind: 'stk-push', companyId: company, limit: 200 };
  const open = useLive(withQuery('transactions', { ...query, open: true }));
  const answered = useLive(withQuery('transactions', { ...query, open: false, limit: 5 }));
  const wanted = digitsOf(number);
  const prompts = (open.data ?? []).filter(
    ({ transactionId, phoneNumber = '' }) =>
      (only === '' || transactionId === only) && phoneNumber.includes(wanted),
  );
  const refresh = () => {
    open.refresh();
    answered.refresh();
  };
  return html`<div class="wide-page slim">
    <${PageHead} title="STK push prompts" here="/emulator/stk" />
    <${Connection} trouble=${trouble} />
    <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${CompanyChoice}
        all
        companies=${overview?.companies ?? []}
        value=${company}
        onChoose=${setCompany}
      />
      <label class="wide">
        Phone number
        <input
          type="tel"
          value=${number}
          placeholder="any phone"
          onInput=${(event) => setNumber(event.currentTarget.value)}
        />
      </label>
      ${only !== '' && html`<button onClick=${() => setOnly('')}>Show every prompt</button>`}
    </form>
    <main class="handset tall" aria-label="The customer's phone, emulated">
      <div aria-live="polite" class="quiet">
        ${
          open.data === undefined
            ? 'Loading…'
            : `${prompts.length} ${prompts.length === 1 ? 'prompt' : 'prompts'} waiting`
        }
      </div>
      ${open.data !== undefined && prompts.length === 0 && html`<${Nothing} filtered=${only + wanted + company !== ''} />`}
      ${prompts.map(
        (each) => html`<${Prompt} key=${each.transactionId} push=${each} onAnswered=${refresh} />`,
      )}
    </main>
    <${Answered} pushes=${answered.data ?? []} />
  </div>`;
}

function Nothing({ filtered }) {
  return html`<p class="empty">
    ${
      filtered
        ? 'No prompt waits for this company, phone or transaction.'
        : 'No prompt waits. Create an STK push on '
    }
    ${!filtered && html`<a href="/emulator">the other page</a>`}
    ${!filtered && ', or let the merchant’s application ask for one: it shows up here by itself.'}
  </p>`;
}

function Prompt({ push, onAnswered }) {
  const { busy, problem, run } = useAction();
  const [slip, setSlip] = useState(/** @type {string | undefined} */ (undefined));
  const { transactionId, amount, companyId, accountReference, externalReference } = push;
  const answer = (how) =>
    run(async () => {
      await call('POST', `transactions/${encodeURIComponent(transactionId)}/${how}`);
    }).then(onAnswered);
  // The PIN ends here: there is nobody to check it with, and it is sent nowhere.
  const pay = (event) => {
    event.preventDefault();
    const sound = /^\d{4}$/.test(event.currentTarget.pin.value);
    setSlip(sound ? undefined : 'The PIN is four digits. Any four will do; never use a real one.');
    if (sound) void answer('complete');
  };
  const id = `pin-${transactionId}`;
  return html`<article class="message prompt">
    <h2>Pay ${formatAmount(amount)} to ${companyId}?</h2>
    <p>
      Account <b>${accountReference}</b>${
        accountReference === externalReference ? '' : html`, reference <b>${externalReference}</b>`
      }
    </p>
    <p class="quiet">
      ${push.phoneNumber ?? 'no phone number given'} · <${Moment} at=${push.createdAt} />
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
        aria-invalid=${slip !== undefined}
      />
      <${Problem} text=${slip ?? problem} />
      <button class="primary" disabled=${busy}>Pay</button>
      <button type="button" disabled=${busy} onClick=${() => answer('fail')}>Cancel</button>
    </form>
  </article>`;
}

function Answered({ pushes }) {
  if (pushes.length === 0) return null;
  return html`<section class="narrow" aria-labelledby="answered-title">
    <h2 id="answered-title">Answered last</h2>
    <ul class="transactions">
      ${pushes.toReversed().map(
        (each) =>
          html`<li key=${each.transactionId}>
            <span class=${`state ${each.completedAt ? 'good' : 'bad'}`}>${each.status}</span>${' '}
            <b>${formatAmount(each.amount)}</b> ${each.externalReference}${' '}
            <a href=${withQuery('/emulator', { search: each.transactionId })}>its deliveries</a>
          </li>`,
      )}
    </ul>
  </section>`;
}

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
page.replaceChildren();
render(html`<${Phone} />`, page);
