import { html } from 'htm/preact';
import { WebhookRequests } from './arrivals.js';
import { Time, capped, counted, duration, number } from './format.js';
import { Handlers, sum } from './handlers.js';
import { Plots } from './plots.js';
import { expectationsLink, listLink } from './route.js';

/** Age from which the oldest pending delivery is highlighted, in milliseconds. */
const LONG_MS = 5 * 60_000;
/** Age from which the age of the counts of the range is shown, in milliseconds. */
const SHOW_AGE_MS = 60_000;
/** The time ranges of the overview: minutes and label. */
export const RANGES = { 15: '15 min', 60: '1 h', 360: '6 h', 1440: '24 h' };

/**
 * @param {object} props
 * @param {import('./api.js').Overview} props.overview
 * @param {number} props.minutes
 * @param {(minutes: number) => void} props.onRange
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Overview({ overview, minutes, onRange, ask }) {
  const { now, stats, activity, completeFrom, handlers, capabilities, arrivals } = overview;
  const incomplete = completeFrom > /** @type {import('./api.js').Minute} */ (activity[0]).startsAt;
  const ageMs = Date.parse(now) - Date.parse(overview.range.countedAt);
  const age = ageMs >= SHOW_AGE_MS ? `, counted ${duration(ageMs)} ago` : '';
  const range = `last ${rangeOf(minutes)}${incomplete ? ', incomplete' : ''}${age}`;
  return html`
    <h1 tabindex="-1">Overview</h1>
    <${WebhookRequests} arrivals=${arrivals} now=${now} />
    <${Figures} overview=${overview} range=${range} />
    ${
      (arrivals.lastAcceptedAt ?? arrivals.poll ?? arrivals.overdue) === null &&
      html`<p class="empty">
        <strong>No event received yet.</strong> Send a test webhook: it then appears here.
      </p>`
    }
    <section aria-labelledby="handlers">
      <h2 id="handlers">Deliveries by handler</h2>
      ${
        handlers.length > 0
          ? html`<${Handlers}
              handlers=${handlers}
              stats=${stats}
              deliveries=${overview.range.deliveries}
              range=${range}
              ask=${ask}
            />`
          : html`<p class="empty">
              <strong>No handlers.</strong> Put${' '}
              <code>@OnPaymentEvent('transaction.completed')</code> on a method of a provider. Until
              then, events are stored as unhandled.
            </p>`
      }
    </section>
    <section aria-labelledby="activity">
      <div class="heading">
        <h2 id="activity">Activity</h2>
        <div class="choices" role="group" aria-label="Time range">
          ${Object.entries(RANGES).map(
            ([value, label]) =>
              html`<button
                type="button"
                aria-pressed=${minutes === Number(value)}
                onClick=${() => onRange(Number(value))}
              >
                ${label}
              </button>`,
          )}
        </div>
      </div>
      <${Plots}
        activity=${activity}
        deliveries=${overview.range.deliveries}
        completeFrom=${incomplete ? completeFrom : null}
        now=${now}
        range=${range}
      />
    </section>
    ${
      !capabilities.durable &&
      html`<p class="quiet">This inbox is in memory: its events are lost when the process ends.</p>`
    }
  `;
}

/** @param {number} minutes */
function rangeOf(minutes) {
  if (minutes < 60) return `${minutes} min`;
  return minutes === 60 ? 'hour' : `${minutes / 60} hours`;
}

/** What needs a person comes first. @param {{ overview: import('./api.js').Overview, range: string }} props */
function Figures({ overview: { stats, expectations, arrivals, range: counts }, range }) {
  const dead = sum(stats, 'dead');
  const { unhandled, stale } = stats;
  return html`<ul class="figures">
    <li class=${dead.count > 0 ? 'bad' : ''}>
      <a href="#/failures">
        <strong>${capped(dead)}</strong> <span>dead</span>${' '}
        <small
          >${dead.count > 0 ? 'deliveries out of attempts: redrive or skip' : 'no dead letters'}</small
        >
      </a>
    </li>
    ${
      expectations &&
      html`<li class=${expectations.overdueUnknown.count > 0 ? 'bad' : ''}>
        <a
          href=${expectationsLink({ show: expectations.overdueUnknown.count > 0 ? 'unknown' : 'waiting' })}
        >
          <strong>${capped(expectations.overdueUnknown)}</strong>${' '}
          <span>overdue, unknown whether paid</span>${' '}
          <small>${openText(expectations)}</small>
        </a>
      </li>`
    }
    <li class=${unhandled.count > 0 ? 'warn' : ''}>
      <a href=${listLink({ state: 'unhandled' })}>
        <strong>${capped(unhandled)}</strong> <span>unhandled</span>${' '}
        <small
          >${unhandled.count > 0 ? 'no handler matched them' : 'every event had a handler'}</small
        >
      </a>
    </li>
    ${
      stale.count > 0 &&
      html`<li class="warn">
        <a href=${listLink({ state: 'stale' })}>
          <strong>${capped(stale)}</strong> <span>stale</span>${' '}
          <small>replays or late events</small>
        </a>
      </li>`
    }
    <${Oldest} stats=${stats} />
    <li>
      <a href=${listLink()}>
        <${Received} counts=${counts} range=${range} />
        ${arrivals.poll !== null && html`<small>newest poll <${Time} at=${arrivals.poll} /></small>`}
        ${arrivals.overdue !== null && html`<small>newest overdue <${Time} at=${arrivals.overdue} /></small>`}
      </a>
    </li>
  </ul>`;
}

/**
 * The events of the range by how they were received, and what became of their deliveries. The module itself creates the
 * events of overdue payments, so they are not received.
 *
 * @param {{ counts: import('./api.js').Overview['range'], range: string }} props
 */
function Received({ counts: { events, deliveries }, range }) {
  const { webhook, poll, test, overdue } = events;
  const { done, dead, skipped, pending, running } = deliveries;
  const open = pending + running;
  const apart = overdue > 0 ? `, ${number(overdue)} overdue apart` : '';
  return html`<strong>${number(webhook + poll + test)}</strong>${' '} <span>received</span>${' '}
    <small
      >${`${number(webhook)} by webhook, ${number(poll)} by poll, ${number(test)} test${apart}; ${range}`}</small
    >
    <small
      >${`${counted(done + dead + skipped + open, 'delivery')}: ${number(done)} done, ${number(dead)} dead, ${number(skipped)} skipped, ${number(open)} open`}</small
    >`;
}

/** @param {NonNullable<import('./api.js').Overview['expectations']>} expectations */
function openText({ waiting, overdueUnpaid }) {
  const one = waiting.count === 1 && !waiting.more;
  const waits = `${capped(waiting)} ${one ? 'expected payment waits' : 'expected payments wait'}`;
  return overdueUnpaid.count === 0 ? waits : `${capped(overdueUnpaid)} not paid, ${waits}`;
}

/** @param {{ stats: import('./api.js').Stats }} props */
function Oldest({ stats: { oldestPendingMs, paused } }) {
  if (oldestPendingMs === null) {
    return html`<li>
      <div><strong>none</strong> <span>pending</span>${' '} <small>no delivery waits</small></div>
    </li>`;
  }
  const long = oldestPendingMs >= LONG_MS;
  const why =
    paused.length > 0 ? 'is its handler paused, or does it fail?' : 'does a handler fail?';
  return html`<li class=${long ? 'warn' : ''}>
    <a href=${listLink({ state: 'pending', order: 'oldest' })}>
      <strong>${duration(oldestPendingMs)}</strong> <span>oldest pending</span>${' '}
      <small>${long ? why : 'since it was received'}</small>
    </a>
  </li>`;
}
