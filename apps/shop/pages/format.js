import { html } from 'htm/preact';

const CURRENCY = document.documentElement.dataset['currency'];
const AMOUNT = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const DATE_AND_TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

/**
 * Formats an amount, such as `KES 1,500.00`. An amount is `null` if it is a sum that is too large for JSON.
 *
 * @param {number | null} amount
 */
export function formatAmount(amount) {
  return amount === null ? '–' : `${CURRENCY}\u00a0${AMOUNT.format(amount)}`;
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
/** @type {readonly [Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/**
 * Shows a time with its date, in the time zone of the reader. The tooltip contains the time relative to now.
 *
 * @param {{ at: Date }} props
 */
export function Time({ at }) {
  /** @param {{ currentTarget: HTMLElement }} event */
  const showAge = ({ currentTarget }) => {
    currentTarget.title = relative(at);
  };
  return html`<time datetime=${at.toISOString()} onPointerEnter=${showAge}
    >${DATE_AND_TIME.format(at)}</time
  >`;
}

/** Returns how long ago a time was, such as `3 minutes ago`. @param {Date} at */
function relative(at) {
  const seconds = Math.round((at.getTime() - Date.now()) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  return RELATIVE.format(Math.trunc(seconds / size), unit);
}
