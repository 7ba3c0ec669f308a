import { html } from 'htm/preact';

const TIME = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
});
const AMOUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 20 });

/** A time of day in the reader's time zone, with the complete timestamp as tooltip. */
export function Time({ at }) {
  return html`<time datetime=${at} title=${at}>${TIME.format(new Date(at))}</time>`;
}

/**
 * Formats an amount with thousands separators and all its decimals. The service sends no currency.
 *
 * @param {number} amount
 */
export function formatAmount(amount) {
  return AMOUNT.format(amount);
}
