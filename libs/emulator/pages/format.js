import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';

const TIME = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
  timeZoneName: 'short',
});
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const DATE_AND_TIME = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'long',
});
const AMOUNT = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 20 });
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

/** The emulator's clock minus the browser's clock, in milliseconds. */
let clockOffsetMs = 0;

/**
 * A time in the reader's time zone, with the day if the time is not today. The tooltip contains the time relative to
 * the emulator's clock, and the complete timestamp.
 */
export function Time({ at }) {
  const time = new Date(at);
  const day = time.toDateString() === new Date().toDateString() ? '' : `${DAY.format(time)} `;
  const showAge = (event) => (event.currentTarget.title = `${relative(time)}, ${at}`);
  return html`<time datetime=${at} title=${at} onPointerEnter=${showAge}
    >${day}${TIME.format(time)}</time
  >`;
}

/** Returns how long ago a time was, or how far it is in the future, by the emulator's clock. */
function relative(time) {
  const ago = Math.round((Date.now() + clockOffsetMs - time.getTime()) / 1000);
  if (Math.abs(ago) < 2) return 'now';
  return ago < 0 ? `in ${formatDuration(-ago)}` : `${formatDuration(ago)} ago`;
}

/**
 * Formats an amount with the currency, thousands separators and all its decimals, at least two.
 *
 * @param {number} amount
 * @param {string} currency the emulator's option `currency`, because the service's fields contain no currency
 */
export function formatAmount(amount, currency) {
  return `${currency} ${AMOUNT.format(amount)}`;
}

/** Shows the emulator's clock and the real time, if they differ by more than a second. */
export function ClockNotice({ overview: { now, realTime } }) {
  useEffect(() => {
    clockOffsetMs = Date.parse(now) - Date.now();
  }, [now]);
  const difference = Math.round((Date.parse(now) - Date.parse(realTime)) / 1000);
  if (Math.abs(difference) <= 1) return null;
  return html`<p class="clock" role="note">
    <span>
      Emulator’s clock: <time datetime=${now}>${DATE_AND_TIME.format(new Date(now))}</time>
    </span>
    <span>
      Real time: <time datetime=${realTime}>${DATE_AND_TIME.format(new Date(realTime))}</time>
    </span>
    <span>
      ${`The times of payments and deliveries are by the emulator’s clock, which is ${formatDuration(Math.abs(difference))} ${difference < 0 ? 'behind' : 'ahead'}.`}
    </span>
  </p>`;
}

/** Returns the two largest units of a duration, such as `2 hours 5 minutes`. */
function formatDuration(seconds) {
  let rest = seconds;
  const parts = UNITS.map(([unit, size]) => {
    const count = Math.floor(rest / Number(size));
    rest -= count * Number(size);
    return [count, unit];
  });
  return parts
    .slice(parts.findIndex(([count]) => count !== 0))
    .slice(0, 2)
    .filter(([count]) => count !== 0)
    .map(([count, unit]) => `${count} ${unit}${count === 1 ? '' : 's'}`)
    .join(' ');
}
