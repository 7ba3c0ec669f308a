import { html } from 'htm/preact';

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
});
const AMOUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 20 });

/** A time of day in the reader's zone, its whole instant a hover away. */
export function Moment({ at }) {
  return html`<time datetime=${at} title=${at}>${CLOCK.format(new Date(at))}</time>`;
}

/** @param {number} amount as it is, grouped; in which currency, nobody has said */
export function formatAmount(amount) {
  return AMOUNT.format(amount);
}
