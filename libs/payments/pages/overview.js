import { html } from 'htm/preact';
import { STATES, counted, duration, number, visible } from './format.js';
import { Plots } from './plots.js';
import { listLink } from './route.js';

/** From here on a wait is called long. */
const LONG_MS = 5 * 60_000;
/** Minutes that can be shown, and how they are called. */
export const RANGES = { 15: '15 min', 60: '1 h', 360: '6 h', 1440: '24 h' };

/**
 * @param {object} props
 * @param {import('./api.js').Overview} props.overview
 * @param {number} props.minutes
 * @param {(minutes: number) => void} props.onRange
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Overview({ overview, minutes, onRange, ask }) {
  const { stats, activity, handlers, capabilities } = overview;
  const empty = stats.deliveries.length === 0 && stats.unhandled + stats.stale === 0;
  return html`
    <h1 tabindex="-1">Overview</h1>
    <${Figures} overview=${overview} minutes=${minutes} />
    ${
      empty &&
      !activity.some(({ received }) => received > 0) &&
      html`<p class="empty">
        <strong>Nothing received yet.</strong> Send a test webhook with${' '}
        <code>payments.sendTestWebhook()</code>, and it shows up here.
      </p>`
    }
    <section aria-labelledby="handlers">
      <h2 id="handlers">Deliveries by handler</h2>
      ${
        handlers.length > 0
          ? html`<${Handlers} handlers=${handlers} stats=${stats} ask=${ask} />`
          : html`<p class="empty">
              <strong>No handlers.</strong> Put${' '}
              <code>@OnPaymentEvent('transaction.completed')</code> on a method of a provider:
              events are kept until then, as unhandled.
            </p>`
      }
    </section>
    <section aria-labelledby="activity">
      <div class="heading">
        <h2 id="activity">Activity</h2>
        <div class="choices" role="group" aria-label="Time shown">
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
      <${Plots} activity=${activity} />
    </section>
    ${
      !capabilities.durable &&
      html`<p class="quiet">This inbox is in memory: what it holds goes with the process.</p>`
    }
  `;
}

/** @param {{ overview: import('./api.js').Overview, minutes: number }} props */
function Figures({ overview: { stats, activity }, minutes }) {
  const dead = sum(stats, 'dead');
  const received = activity.reduce((total, minute) => total + minute.received, 0);
  const range =
    minutes < 60 ? `${minutes} minutes` : minutes === 60 ? 'hour' : `${minutes / 60} hours`;
  return html`<ul class="figures">
    <${Oldest} stats=${stats} />
    <li class=${dead > 0 ? 'bad' : ''}>
      <a href=${listLink({ state: 'dead' })}>
        <strong>${number(dead)}</strong> <span>dead</span>
        <small>${dead > 0 ? 'out of attempts: redrive or skip' : 'nothing given up'}</small>
      </a>
    </li>
    <li class=${stats.unhandled > 0 ? 'warn' : ''}>
      <a href=${listLink({ state: 'unhandled' })}>
        <strong>${number(stats.unhandled)}</strong> <span>unhandled</span>
        <small>${stats.unhandled > 0 ? 'no handler took them' : 'each found a handler'}</small>
      </a>
    </li>
    ${
      stats.stale > 0 &&
      html`<li class="warn">
        <a href=${listLink({ state: 'stale' })}>
          <strong>${number(stats.stale)}</strong> <span>stale</span>
          <small>replays or late deliveries</small>
        </a>
      </li>`
    }
    <li>
      <a href=${listLink()}>
        <strong>${number(received)}</strong> <span>received</span>
        <small>in the last ${range}</small>
      </a>
    </li>
  </ul>`;
}

/** @param {{ stats: import('./api.js').Stats }} props */
function Oldest({ stats: { oldestPendingMs, paused } }) {
  if (oldestPendingMs === null) {
    return html`<li>
      <div><strong>none</strong> <span>waiting</span> <small>all is handled</small></div>
    </li>`;
  }
  const long = oldestPendingMs >= LONG_MS;
  const why = paused.length > 0 ? 'long, and handlers are paused' : 'long: is a handler failing?';
  return html`<li class=${long ? 'warn' : ''}>
    <a href=${listLink({ state: 'pending', order: 'oldest' })}>
      <strong>${duration(oldestPendingMs)}</strong> <span>oldest waiting</span>
      <small>${long ? why : 'on its way'}</small>
    </a>
  </li>`;
}

/**
 * @param {object} props
 * @param {string[]} props.handlers
 * @param {import('./api.js').Stats} props.stats
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function Handlers({ handlers, stats, ask }) {
  const all = stats.paused.includes('*');
  return html`<table class="counts" role="table">
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader" scope="col">Handler</th>
        ${STATES.map((state) => html`<th role="columnheader" scope="col" class="number">${state}</th>`)}
        <th role="columnheader" scope="col"><span class="unseen">Claims</span></th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${handlers.map((handler) => {
        const paused = stats.paused.includes(handler);
        return html`<tr role="row" key=${handler}>
          <th role="rowheader" scope="row">
            <bdi>${visible(handler)}</bdi>
            ${paused && html`${' '}<span class="badge paused">paused</span>`}
          </th>
          ${STATES.map((state) => html`<${Count} stats=${stats} state=${state} handler=${handler} />`)}
          <td role="cell" class="act">
            <${Claims} handler=${handler} paused=${paused} ask=${ask} />
          </td>
        </tr>`;
      })}
    </tbody>
    <tfoot role="rowgroup">
      <tr role="row">
        <th role="rowheader" scope="row">
          All ${all && html`<span class="badge paused">paused</span>`}
        </th>
        ${STATES.map((state) => html`<${Count} stats=${stats} state=${state} />`)}
        <td role="cell" class="act"><${Claims} handler="*" paused=${all} ask=${ask} /></td>
      </tr>
    </tfoot>
  </table>`;
}

/** @param {{ stats: import('./api.js').Stats, state: import('./api.js').State, handler?: string }} props */
function Count({ stats, state, handler }) {
  const count = sum(stats, state, handler);
  const label = `${counted(count, 'delivery')} ${state}${handler === undefined ? '' : ` of ${visible(handler)}`}`;
  return html`<td role="cell" class="number" data-state=${state}>
    ${
      count === 0
        ? html`<span class="zero">0</span>`
        : html`<a href=${listLink({ state, handler })} class=${state} aria-label=${label}
            >${number(count)}</a
          >`
    }
  </td>`;
}

/**
 * @param {object} props
 * @param {string} props.handler
 * @param {boolean} props.paused
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function Claims({ handler, paused, ask }) {
  const kind = paused ? 'resume' : 'pause';
  const verb = paused ? 'Resume' : 'Pause';
  return html`<button
    type="button"
    aria-label=${`${verb} ${handler === '*' ? 'all handlers' : visible(handler)}`}
    onClick=${() => ask({ kind, handler })}
  >
    ${verb}
  </button>`;
}

/**
 * @param {import('./api.js').Stats} stats
 * @param {import('./api.js').State} state
 * @param {string} [handler] default: all
 */
function sum(stats, state, handler) {
  return stats.deliveries
    .filter((one) => one.state === state && (handler === undefined || one.handler === handler))
    .reduce((total, { count }) => total + count, 0);
}
