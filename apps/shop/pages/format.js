import { html } from 'htm/preact';

const AMOUNT = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/**
 * Formats an amount. `null` is a sum that is too large for JSON.
 *
 * @param {number | null} amount
 */
export function formatAmount(amount) {
  return amount === null ? '–' : AMOUNT.format(amount);
}

/**
 * A time in the locale and time zone of the reader.
 *
 * @param {{ at: Date, short?: boolean }} props
 */
export function Time({ at, short = false }) {
  const text = short
    ? at.toLocaleTimeString(undefined, { timeStyle: 'medium' })
    : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return html`<time datetime=${at.toISOString()}>${text}</time>`;
}
