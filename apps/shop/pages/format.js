import { html } from 'htm/preact';

const AMOUNT = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/**
 * An amount, as it is read. JSON has none for what is beyond all numbers.
 *
 * @param {number | null} amount
 */
export function toAmount(amount) {
  return amount === null ? '–' : AMOUNT.format(amount);
}

/**
 * A moment, in the reader's own form and time.
 *
 * @param {{ at: Date, short?: boolean }} props
 */
export function Time({ at, short = false }) {
  const text = short
    ? at.toLocaleTimeString(undefined, { timeStyle: 'medium' })
    : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return html`<time datetime=${at.toISOString()}>${text}</time>`;
}
