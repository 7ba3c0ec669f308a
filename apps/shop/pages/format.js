import { html } from 'htm/preact';

const CURRENCY = document.documentElement.dataset['currency'];
const AMOUNT = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const DATE_AND_TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

/**
 * Formats an amount, such as `KES 1,500.00`. `null` is a sum that is too large for JSON.
 *
 * @param {number | null} amount
 */
export function formatAmount(amount) {
  return amount === null ? '–' : `${CURRENCY}\u00a0${AMOUNT.format(amount)}`;
}

/**
 * A time with its date, in the time zone of the reader.
 *
 * @param {{ at: Date }} props
 */
export function Time({ at }) {
  return html`<time datetime=${at.toISOString()}>${DATE_AND_TIME.format(at)}</time>`;
}
