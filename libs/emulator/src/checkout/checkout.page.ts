import type { Markup } from '../pages/markup.js';
import { markup } from '../pages/markup.js';
import type { Transaction } from '../transactions/transaction.record.js';
import type { CheckoutStep } from './checkout.desk.js';
import { isUsable } from './one-time.code.js';

/** What the page says of an invoice and of where its customer stands. */
export interface CheckoutView {
  readonly transaction: Transaction;
  readonly step: CheckoutStep;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Whether it leads to the delivery log. */
  readonly withLog: boolean;
}

/** The hosted checkout, whole: it works without a script. */
export function checkoutPage({ transaction, step, now, withLog }: CheckoutView): Markup {
  const { transactionId, amount, externalReference, accountReference, companyId, environment } =
    transaction;
  return markup`<article class="card checkout">
<h1>Checkout</h1>
<p class="amount">${formatAmount(amount)}</p>
<dl class="facts">
<div><dt>Reference</dt><dd>${externalReference}</dd></div>
${accountReference === externalReference ? undefined : markup`<div><dt>Account</dt><dd>${accountReference}</dd></div>`}
<div><dt>Merchant</dt><dd>${companyId}</dd></div>
<div><dt>Environment</dt><dd>${environment}</dd></div>
</dl>
${standing(transaction, step, now)}
</article>
${withLog ? markup`<p class="quiet"><a href="/emulator?search=${encodeURIComponent(transactionId)}">Deliveries about this payment</a>, in the emulator's log</p>` : undefined}`;
}

/** What a checkout address leads to where there is no such invoice. */
export function noSuchInvoice(transactionId: string, withLog: boolean): Markup {
  return markup`<article class="card checkout">
<h1>No such invoice</h1>
<p>The emulator knows no checkout invoice <code>${transactionId}</code>. It keeps them in memory: after a restart or a reset, create the order anew.</p>
${withLog ? markup`<p><a href="/emulator">To the emulator's log</a></p>` : undefined}
</article>`;
}

function standing(transaction: Transaction, step: CheckoutStep, now: number): Markup {
  const { completedAt, failedAt } = transaction;
  if (completedAt !== undefined) {
    return markup`<p class="state good" role="status">Paid</p>
<p>This invoice was paid at ${moment(completedAt)}. It can't be paid twice.</p>
${wayBack(transaction)}`;
  }
  if (failedAt !== undefined) {
    return markup`<p class="state bad" role="status">Declined</p>
<p>This payment was declined at ${moment(failedAt)}. Nothing was paid; ask the merchant for a new invoice.</p>
${wayBack(transaction)}`;
  }
  return open(transaction, step, now);
}

function open(transaction: Transaction, step: CheckoutStep, now: number): Markup {
  const { transactionId: id } = transaction;
  if (step.at === 'phone') return phoneForm(id, step);
  if (step.at === 'code') return codeForm(id, step, now);
  if (step.at === 'cancelled') {
    return markup`<p class="state" role="status">Cancelled</p>
<p>Nothing was paid. The invoice is still open.</p>
<div class="stack">${button(id, 'restart', 'Start again', 'primary')}</div>
${wayBack(transaction)}`;
  }
  return markup`<p>Code accepted for <b>${step.phoneNumber}</b>.</p>
<div class="stack">
${button(id, 'pay', `Pay ${formatAmount(transaction.amount)}`, 'primary')}
${button(id, 'decline', 'Decline: the payment fails', 'danger')}
${button(id, 'cancel', 'Cancel')}
</div>`;
}

function phoneForm(id: string, step: CheckoutStep & { at: 'phone' }): Markup {
  const { typed, problem } = step;
  return markup`<form method="post" action="${path(id, 'phone')}" class="stack" novalidate>
<label for="phoneNumber">Phone number</label>
<input id="phoneNumber" name="phoneNumber" type="tel" inputmode="tel" autocomplete="tel" maxlength="40" value="${typed}" aria-describedby="phone-hint${problem === undefined ? '' : ' problem'}"${invalid(problem)} autofocus>
<p id="phone-hint" class="quiet">Any number will do. The code shows on this page; no message is sent.</p>
${alert(problem)}
<button class="primary">Send the code</button>
</form>
<div class="stack">${button(id, 'cancel', 'Cancel')}</div>`;
}

function codeForm(id: string, step: CheckoutStep & { at: 'code' }, now: number): Markup {
  const { code, phoneNumber, problem } = step;
  const usable = isUsable(code, now);
  const why =
    code.triesLeft === 0 ? 'Too many wrong tries: this code is void.' : 'This code has expired.';
  const form = markup`<form method="post" action="${path(id, 'code')}" class="stack" novalidate>
<label for="code">One-time code</label>
<input id="code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code" maxlength="12"${problem === undefined ? undefined : markup` aria-describedby="problem"`}${invalid(problem)} autofocus>
${alert(problem)}
<button class="primary">Confirm the code</button>
</form>`;
  return markup`<aside class="handset" aria-label="The customer's phone, emulated">
<p class="quiet">Message to ${phoneNumber}, shown here instead of sent</p>
<p class="message">${usable ? markup`Your one-time code is <b class="digits">${code.digits}</b>. Good until ${moment(new Date(code.expiresAt).toISOString())}.` : 'The code in this message no longer works.'}</p>
</aside>
${usable ? form : alert(why)}
<div class="stack">
${button(id, 'resend', 'Send another code', usable ? '' : 'primary')}
${button(id, 'restart', 'Use another number')}
${button(id, 'cancel', 'Cancel')}
</div>`;
}

function wayBack({ returnUrl }: Transaction): Markup {
  const url = returnUrl === undefined ? null : URL.parse(returnUrl);
  if (!url) return markup`<p>You can close this page.</p>`;
  return markup`<p><a class="button" rel="noreferrer" href="${url.href}">Back to the merchant (${url.host})</a></p>`;
}

function button(id: string, move: string, label: string, look = ''): Markup {
  return markup`<form method="post" action="${path(id, move)}"><button class="${look}">${label}</button></form>`;
}

function path(id: string, move: string): string {
  return `/emulator/checkout/${encodeURIComponent(id)}/${move}`;
}

function alert(problem: string | undefined): Markup | undefined {
  return problem === undefined
    ? undefined
    : markup`<p id="problem" class="problem" role="alert">${problem}</p>`;
}

function invalid(problem: string | undefined): Markup | undefined {
  return problem === undefined ? undefined : markup` aria-invalid="true"`;
}

/** The page runs no script that could know the reader's time zone: the time names its own. */
function moment(iso: string): Markup {
  return markup`<time datetime="${iso}">${iso.slice(11, 19)} UTC</time>`;
}

/** The number as it is, grouped; in which currency, nobody has said. */
function formatAmount(amount: number): string {
  return new Intl.NumberFormat('en', { maximumFractionDigits: 20 }).format(amount);
}
