import { html } from 'htm/preact';

/** @typedef {import('./api.js').State} State */

/** @type {readonly State[]} */
export const STATES = ['pending', 'running', 'done', 'dead', 'skipped'];

/** The states of deliveries in the order of their urgency. @type {readonly State[]} */
const URGENCY = ['dead', 'pending', 'running', 'skipped', 'done'];

/**
 * Sorts deliveries so that those that need a person come first.
 *
 * @param {import('./api.js').StoredEvent['deliveries']} deliveries
 */
export function urgentFirst(deliveries) {
  return deliveries.toSorted((a, b) => URGENCY.indexOf(a.state) - URGENCY.indexOf(b.state));
}

const numbers = new Intl.NumberFormat();
/** @type {Intl.DateTimeFormatOptions} */
const TIME = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };
const clock = new Intl.DateTimeFormat(undefined, TIME);
const clockAndZone = new Intl.DateTimeFormat(undefined, { ...TIME, timeZoneName: 'short' });
const dayClockAndZone = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  ...TIME,
  timeZoneName: 'short',
});
const dayAndClock = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', ...TIME });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** @param {number} value */
export function number(value) {
  return numbers.format(value);
}

/**
 * Formats a count as `12`, or as `10,000+` if there are more.
 *
 * @param {import('./api.js').CappedCount} count
 */
export function capped({ count, more }) {
  return `${number(count)}${more ? '+' : ''}`;
}

/**
 * The sum of counts. `more` is true if any count has `more`.
 *
 * @param {import('./api.js').CappedCount[]} counts
 * @returns {import('./api.js').CappedCount}
 */
export function total(counts) {
  return {
    count: counts.reduce((sum, { count }) => sum + count, 0),
    more: counts.some(({ more }) => more),
  };
}

/**
 * Formats a number with its noun, such as `3 events`, `1 event` or `2 deliveries`.
 *
 * @param {number} value
 * @param {string} one
 */
export function counted(value, one) {
  return `${number(value)} ${value === 1 ? one : plural(one)}`;
}

/** @param {string} one */
export function plural(one) {
  if (one.endsWith('y')) return `${one.slice(0, -1)}ies`;
  return one.endsWith('s') ? `${one}es` : `${one}s`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(ms < 10_000 ? 1 : 0))} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ''}`;
  return counted(Math.floor(hours / 24), 'day');
}

/** @param {Date} date */
export function dayAndTime(date) {
  return dayAndClock.format(date);
}

/** @param {Date} date */
export function timeOfDay(date) {
  return clock.format(date);
}

/** Describes a time relative to now, such as `3 min ago`. @param {string} at */
export function ago(at) {
  return relative(new Date(at));
}

/**
 * Describes a time relative to now, for example `3 min ago` or `in 3 min`.
 *
 * @param {Date} date
 */
export function relative(date) {
  const ago = Date.now() - date.getTime();
  // The clocks of the store and of this browser can differ by a few seconds.
  if (Math.abs(ago) < 5000) return 'now';
  return ago < 0 ? `in ${duration(-ago)}` : `${duration(ago)} ago`;
}

/**
 * A time with its zone, and with its day if that is not today. The title has the time relative to now.
 *
 * @param {{ at: string }} props
 */
export function Time({ at }) {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  const text = (today ? clockAndZone : dayClockAndZone).format(date);
  return html`<time datetime=${at} title=${`${relative(date)}, ${full.format(date)}`}
    >${text}</time
  >`;
}

/** @param {{ state: string, children?: unknown }} props */
export function Badge({ state, children }) {
  return html`<span class=${`badge ${state}`}>${children ?? state}</span>`;
}

/** Control, invisible and bidirectional characters, which can change how the surrounding text is displayed. */
const INVISIBLE = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Makes invisible characters visible, as `\u202e`.
 *
 * @param {string} text
 */
export function visible(text) {
  return text.replace(
    INVISIBLE,
    (one) => `\\u${one.codePointAt(0)?.toString(16).padStart(4, '0')}`,
  );
}

/**
 * Text from outside the console. The text is isolated, so that its direction does not change the surrounding text.
 *
 * @param {{ text: string, class?: string }} props
 */
export function Foreign({ text, class: name }) {
  return html`<bdi class=${name}>${visible(text)}</bdi>`;
}
