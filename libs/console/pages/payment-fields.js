import { html } from 'htm/preact';
import { Copy } from './payload.js';
import { visible } from './format.js';

/** Longest id that a row shows completely, in characters. */
const SHOWN = 20;
/** A plain decimal number. */
const DECIMAL = /^-?\d+(\.\d+)?$/;

/**
 * The text, with its middle replaced by `…` if it is long. Two ids often have the same beginning, so the end is shown too.
 *
 * @param {string} text
 */
export function shortened(text) {
  const characters = Array.from(text);
  if (characters.length <= SHOWN) return text;
  return `${characters.slice(0, 10).join('')}…${characters.slice(-8).join('')}`;
}

/**
 * An id in a row: shortened, with the whole id as title and a button that copies it.
 *
 * @param {{ text: string, what: string, href?: string }} props
 */
export function ShortId({ text, what, href }) {
  const shown = html`<bdi class="id" title=${visible(text)}>${visible(shortened(text))}</bdi>`;
  return html`<span class="short">
    ${href === undefined ? shown : html`<a href=${href}>${shown}</a>`}
    <${Copy} text=${text} what=${what} small=${true} inRow=${true} />
  </span>`;
}

/**
 * An amount with its currency, `KES 1,250.00`: all amounts have the same form. An amount that is not a plain number is
 * shown as it was stored.
 *
 * @param {{ amount: string | null, currency: string | null }} event
 */
export function money({ amount, currency }) {
  if (amount === null) return null;
  const text = DECIMAL.test(amount) ? grouped(amount, digitsOf(currency)) : visible(amount);
  return currency === null ? text : `${visible(currency)}\u00a0${text}`;
}

/**
 * Groups digits and keeps all of them: numbers as text have no limit of precision.
 *
 * @param {string} amount
 * @param {number} digits
 */
function grouped(amount, digits) {
  const format = new Intl.NumberFormat(undefined, {
    minimumFractionDigits: digits,
    maximumFractionDigits: 20,
  });
  return format.format(/** @type {any} */ (amount));
}

/** How many decimals the currency has; 2 if it is unknown. @param {string | null} currency */
function digitsOf(currency) {
  try {
    const style = { style: /** @type {const} */ ('currency'), currency: currency ?? '' };
    return new Intl.NumberFormat(undefined, style).resolvedOptions().minimumFractionDigits ?? 2;
  } catch {
    return 2;
  }
}
