import type { Markup } from '../pages/markup.js';
import { markup } from '../pages/markup.js';
import type { Transaction } from '../transactions/transaction.js';
import type { CheckoutStep } from './checkout-sessions.js';
import { isUsable } from './one-time-code.js';

export interface CheckoutView {
  readonly transaction: Transaction;
  readonly step: CheckoutStep;
  /** The current time, in milliseconds since the Unix epoch. */
  readonly now: number;
  readonly currency: string;
  readonly withLog: boolean;
}

/** Renders the hosted checkout. The page works without JavaScript. */
export function checkoutPage(view: CheckoutView): Markup {
  const { transaction, currency, withLog } = view;
  const { transactionId, amount, externalReference, accountReference, companyId, environment } =
    transaction;
  return markup`<article class="card checkout">
<h1>Checkout</h1>
<p class="amount">${formatAmount(amount, currency)}</p>
<dl class="facts">
<div><dt>Reference</dt><dd>${externalReference}</dd></div>
${accountReference === externalReference ? undefined : markup`<div><dt>Account</dt><dd>${accountReference}</dd></div>`}
<div><dt>Merchant</dt><dd>${companyId}</dd></div>
<div><dt>Environment</dt><dd>${environment}</dd></div>
</dl>
${status(view)}
</article>
${withLog ? markup`<p class="quiet"><a href="/emulator?tab=deliveries&search=${encodeURIComponent(transactionId)}">Deliveries of this payment</a> in the delivery log</p>` : undefined}`;
}

export function noSuchInvoice(transactionId: string, withLog: boolean): Markup {
  return markup`<article class="card checkout">
<h1>No such invoice</h1>
<p>The emulator has no checkout invoice <code>${transactionId}</code>. The emulator keeps invoices in memory only. After a restart or a reset of the emulator, create the order again.</p>
${withLog ? markup`<p><a href="/emulator?tab=deliveries">Open the delivery log</a></p>` : undefined}
</article>`;
}

function status(view: CheckoutView): Markup {
  const { transaction } = view;
  const { completedAt, failedAt } = transaction;
  if (completedAt !== undefined) {
    return markup`<p class="state good" role="status">Paid</p>
<p>This invoice was paid at ${time(completedAt)}. It can't be paid twice.</p>
${returnLink(transaction)}`;
  }
  if (failedAt !== undefined) {
    return markup`<p class="state bad" role="status">Declined</p>
<p>This payment was declined at ${time(failedAt)}. Nothing was paid. Ask the merchant for a new invoice.</p>
${returnLink(transaction)}`;
  }
  return openInvoice(view);
}

function openInvoice({ transaction, step, now, currency }: CheckoutView): Markup {
  const { transactionId: id } = transaction;
  if (step.name === 'phone') return phoneForm(id, step);
  if (step.name === 'code') return codeForm(id, step, now);
  if (step.name === 'cancelled') {
    return markup`<p class="state" role="status">Cancelled</p>
<p>Nothing was paid. The invoice is still open.</p>
<div class="stack">${button(id, 'restart', 'Start again', 'primary')}</div>
${returnLink(transaction)}`;
  }
  return markup`<p>Code accepted for <b>${step.phoneNumber}</b>.</p>
<div class="stack">
${button(id, 'pay', `Pay ${formatAmount(transaction.amount, currency)}`, 'primary')}
${button(id, 'decline', 'Decline: the payment fails', 'danger')}
${button(id, 'cancel', 'Cancel')}
</div>`;
}

function phoneForm(id: string, step: CheckoutStep & { name: 'phone' }): Markup {
  const { typed, problem } = step;
  return markup`<form method="post" action="${path(id, 'phone')}" class="stack" novalidate>
<label for="phoneNumber">Phone number</label>
<input id="phoneNumber" name="phoneNumber" type="tel" inputmode="tel" autocomplete="tel" maxlength="40" value="${typed}" aria-describedby="phone-hint${problem === undefined ? '' : ' problem'}"${invalid(problem)} autofocus>
<p id="phone-hint" class="quiet">Enter any number. The code is shown on this page; no message is sent.</p>
${alert(problem)}
<button class="primary">Send the code</button>
</form>
<div class="stack">${button(id, 'cancel', 'Cancel')}</div>`;
}

function codeForm(id: string, step: CheckoutStep & { name: 'code' }, now: number): Markup {
  const { code, phoneNumber, problem } = step;
  const usable = isUsable(code, now);
  const reason =
    code.triesLeft === 0
      ? 'Too many wrong tries. This code is no longer valid.'
      : 'This code has expired.';
  const form = markup`<form method="post" action="${path(id, 'code')}" class="stack" novalidate>
<label for="code">One-time code</label>
<input id="code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code" maxlength="12"${problem === undefined ? undefined : markup` aria-describedby="problem"`}${invalid(problem)} autofocus>
${alert(problem)}
<button class="primary">Confirm the code</button>
</form>`;
  return markup`<aside class="phone" aria-label="The customer's phone, emulated">
<p class="quiet">Message to ${phoneNumber}, shown here instead of being sent</p>
<p class="message">${usable ? markup`Your one-time code is <b class="digits">${code.digits}</b>. Valid until ${time(new Date(code.expiresAt).toISOString())}.` : 'The code in this message is no longer valid.'}</p>
</aside>
${usable ? form : alert(reason)}
<div class="stack">
${button(id, 'resend', 'Send another code', usable ? '' : 'primary')}
${button(id, 'restart', 'Use another number')}
${button(id, 'cancel', 'Cancel')}
</div>`;
}

function returnLink({ returnUrl }: Transaction): Markup {
  const url = returnUrl === undefined ? null : URL.parse(returnUrl);
  if (!url) return markup`<p>You can close this page.</p>`;
  return markup`<p><a class="button" rel="noreferrer" href="${url.href}">Back to the merchant (${url.host})</a></p>`;
}

function button(id: string, action: string, label: string, style = ''): Markup {
  return markup`<form method="post" action="${path(id, action)}"><button class="${style}">${label}</button></form>`;
}

function path(id: string, action: string): string {
  return `/emulator/checkout/${encodeURIComponent(id)}/${action}`;
}

function alert(problem: string | undefined): Markup | undefined {
  return problem === undefined
    ? undefined
    : markup`<p id="problem" class="problem" role="alert">${problem}</p>`;
}

function invalid(problem: string | undefined): Markup | undefined {
  return problem === undefined ? undefined : markup` aria-invalid="true"`;
}

/** Renders a time in UTC, because a page without a script cannot read the time zone of the browser. */
function time(iso: string): Markup {
  return markup`<time datetime="${iso}">${iso.slice(11, 19)} UTC</time>`;
}

/** Formats an amount with the currency, thousands separators and all its decimals, at least two. */
function formatAmount(amount: number, currency: string): string {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 20 };
  return `${currency} ${new Intl.NumberFormat('en', digits).format(amount)}`;
}
