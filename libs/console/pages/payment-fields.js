import { html } from 'htm/preact';
import { Copy } from './payload.js';
import { Foreign, visible } from './format.js';

/** Longest id that a row shows completely, in characters. */
const SHOWN = 20;
/** A plain decimal number. */
const DECIMAL = /^-?\d+(\.\d+)?$/;

/**
 * Returns the text. If the text is long, its middle is replaced with `…`. Two ids often have the same beginning, so the
 * end is shown too.
 *
 * @param {string} text
 */
export function shortened(text) {
  const characters = Array.from(text);
  if (characters.length <= SHOWN) return text;
  return `${characters.slice(0, 10).join('')}…${characters.slice(-8).join('')}`;
}

/**
 * A shortened id in a row, with the whole id as title and a button that copies the id.
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
 * The title of the column of companies, if the rows need one.
 *
 * @param {readonly { company: string }[]} rows
 */
export function severalCompanies(rows) {
  return rows.some(({ company }) => company !== 'default') ? ['Company'] : [];
}

/**
 * The first cells of a row about a payment: its name, and its company if there are several.
 *
 * @param {object} props
 * @param {string} props.company
 * @param {string | null} props.reference
 * @param {string | null} props.transaction
 * @param {string} [props.otherwise] the name of a payment with neither
 * @param {string} props.link
 * @param {readonly string[]} props.companies the result of `severalCompanies`
 */
export function PaymentCells({ company, reference, transaction, otherwise, link, companies }) {
  const name = reference ?? transaction ?? otherwise ?? '';
  return html`<td role="cell" class="what">
      <a href=${link}><${Foreign} text=${name} class="type" /></a>${' '}
      ${transaction === null && reference !== null && html`<small>no transaction id yet</small>`}
      ${transaction !== null && transaction !== name && html`<${ShortId} text=${transaction} what="transaction" />`}
    </td>
    ${
      companies.length > 0 &&
      html`<td role="cell" class="company" data-title="Company">
        <${Foreign} text=${company} />
      </td>`
    }`;
}

/**
 * An amount with its currency, such as `KES 1,250.00`. All amounts have the same form. An amount that is not a plain
 * number is shown as it was stored.
 *
 * @param {{ amount: string | null, currency: string | null }} event
 */
export function money({ amount, currency }) {
  if (amount === null) return null;
  const text = DECIMAL.test(amount) ? grouped(amount, digitsOf(currency)) : visible(amount);
  return currency === null ? text : `${visible(currency)}\u00a0${text}`;
}

/**
 * Groups the digits of a number and keeps all digits, because numbers as text have no limit of precision.
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

/** Returns the number of decimals of the currency; 2 if the currency is unknown. @param {string | null} currency */
function digitsOf(currency) {
  try {
    const style = { style: /** @type {const} */ ('currency'), currency: currency ?? '' };
    return new Intl.NumberFormat(undefined, style).resolvedOptions().minimumFractionDigits ?? 2;
  } catch {
    return 2;
  }
}
