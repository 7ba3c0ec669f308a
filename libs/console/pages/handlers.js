import { html } from 'htm/preact';
import { Foreign, Time, capped, duration, number, plural, total, visible } from './format.js';
import { ActionButton } from './permission.js';
import { listLink } from './route.js';

/** The states whose current number of deliveries is shown. @type {readonly ('pending' | 'running' | 'dead')[]} */
const UNFINISHED = ['pending', 'running', 'dead'];

/** The columns about the deliveries of one time range. `open` is pending or running. */
const RANGE = /** @type {const} */ ([
  'deliveries',
  'done',
  'dead',
  'skipped',
  'open',
  'p50',
  'p95',
]);

/**
 * @param {object} props
 * @param {import('./api.js').Handler[]} props.handlers
 * @param {import('./api.js').Stats} props.stats
 * @param {import('./api.js').RangeCounts} props.deliveries of the events that were received in the range
 * @param {string} props.range label of the time range
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Handlers({ handlers, stats, deliveries, range, ask }) {
  const pauseOf = (/** @type {string} */ name) =>
    stats.paused.find(({ handler }) => handler === name);
  const all = pauseOf('*');
  return html`<table class="counts" role="table">
    <thead role="rowgroup">
      <tr role="row">
        <td role="cell"></td>
        <th role="columnheader" scope="colgroup" colspan="3">now</th>
        <th role="columnheader" scope="colgroup" colspan="7">received in the ${range}</th>
        <td role="cell"></td>
      </tr>
      <tr role="row">
        <th role="columnheader" scope="col">Handler</th>
        ${[...UNFINISHED, ...RANGE].map((title) => html`<th role="columnheader" scope="col" class="number">${title}</th>`)}
        <th role="columnheader" scope="col"><span class="unseen">Actions</span></th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${brokenFirst(handlers, stats).map((handler) => {
        const { name } = handler;
        const paused = pauseOf(name);
        return html`<tr role="row" key=${name}>
          <th role="rowheader" scope="row">
            <bdi>${visible(name)}</bdi>
            <${Paused} pause=${paused} />
            <${Elsewhere} handler=${handler} />
          </th>
          ${UNFINISHED.map((state) => html`<${Count} stats=${stats} state=${state} handler=${name} />`)}
          <${Range} counts=${handler.activity} />
          <td role="cell" class="act">
            <${PauseButton} handler=${name} paused=${paused !== undefined} ask=${ask} />
            ${!handler.here && html`${' '}<${ForgetButton} handler=${name} ask=${ask} />`}
          </td>
        </tr>`;
      })}
    </tbody>
    <tfoot role="rowgroup">
      <tr role="row">
        <th role="rowheader" scope="row">All<${Paused} pause=${all} /></th>
        ${UNFINISHED.map((state) => html`<${Count} stats=${stats} state=${state} />`)}
        <${Range} counts=${deliveries} />
        <td role="cell" class="act">
          <${PauseButton} handler="*" paused=${all !== undefined} ask=${ask} />
        </td>
      </tr>
    </tfoot>
  </table>`;
}

/** @param {{ handler: string, ask: (action: import('./actions.js').Action) => void }} props */
export function ForgetButton({ handler, ask }) {
  return html`<${ActionButton}
    aria-label=${`Forget ${visible(handler)}`}
    onClick=${() => ask({ kind: 'forget', handler })}
  >
    Forget …
  <//>`;
}

/**
 * Handlers with the most dead deliveries come first.
 *
 * @param {import('./api.js').Handler[]} handlers
 * @param {import('./api.js').Stats} stats
 */
function brokenFirst(handlers, stats) {
  /** @param {import('./api.js').Handler} handler */
  const dead = ({ name }) => sum(stats, 'dead', name).count;
  return handlers.toSorted((a, b) => dead(b) - dead(a));
}

/** @param {{ pause: import('./api.js').Pause | undefined }} props */
function Paused({ pause }) {
  if (pause === undefined) return null;
  return html`${' '}<span class="badge paused">paused</span>
    <small class="elsewhere"><${PauseFacts} pause=${pause} /></small>`;
}

/** Since when, by whom, until when and why a handler is paused. @param {{ pause: import('./api.js').Pause }} props */
export function PauseFacts({ pause: { pausedAt, who, reason, until } }) {
  return html`since <${Time} at=${pausedAt} />${who && html` by <${Foreign} text=${who} />`}${
      until && html`, until <${Time} at=${until} />`
    }${reason && html`: <${Foreign} text=${reason} />`}`;
}

/** @param {{ handler: import('./api.js').Handler }} props */
function Elsewhere({ handler: { here, lastSeenAt } }) {
  if (here) return null;
  return html`<small class="elsewhere"
    >not in this
    process${lastSeenAt === null ? '' : html`; last seen <${Time} at=${lastSeenAt} />`}</small
  >`;
}

/** @param {{ stats: import('./api.js').Stats, state: 'pending' | 'running' | 'dead', handler?: string }} props */
function Count({ stats, state, handler }) {
  const count = sum(stats, state, handler);
  const noun = count.count === 1 && !count.more ? 'delivery' : plural('delivery');
  // The list shows events, so the dead deliveries of all handlers are on the page that counts deliveries.
  const href =
    state === 'dead' && handler === undefined ? '#/failures' : listLink({ state, handler });
  const label = `${capped(count)} ${noun} ${state}${handler === undefined ? '' : ` of ${visible(handler)}`}`;
  return html`<td role="cell" class="number" data-state=${state}>
    ${
      count.count === 0
        ? html`<span class="zero">0</span>`
        : html`<a href=${href} class=${state} aria-label=${label}>${capped(count)}</a>`
    }
  </td>`;
}

/** The deliveries of the events that were received in the range. @param {{ counts: import('./api.js').RangeCounts }} props */
function Range({ counts }) {
  const { done, dead, skipped, pending, running, p50Ms, p95Ms } = counts;
  const open = pending + running;
  /** @type {Record<(typeof RANGE)[number], string>} */
  const values = {
    deliveries: number(done + dead + skipped + open),
    done: number(done),
    dead: number(dead),
    skipped: number(skipped),
    open: number(open),
    p50: timeOf(p50Ms),
    p95: timeOf(p95Ms),
  };
  return RANGE.map((title) => {
    const value = values[title];
    // The number of dead deliveries now has the same title.
    const state = title === 'dead' ? 'dead of these' : title;
    return html`<td role="cell" class="number" data-state=${state}>
      <span class=${value === '0' || value === '–' ? 'zero' : title}>${value}</span>
    </td>`;
  });
}

/** @param {number | null} ms */
function timeOf(ms) {
  return ms === null ? '–' : duration(ms);
}

/**
 * @param {object} props
 * @param {string} props.handler
 * @param {boolean} props.paused
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function PauseButton({ handler, paused, ask }) {
  const kind = paused ? 'resume' : 'pause';
  const verb = paused ? 'Resume' : 'Pause';
  return html`<${ActionButton}
    aria-label=${`${verb} ${handler === '*' ? 'all handlers' : visible(handler)}`}
    onClick=${() => ask({ kind, handler })}
  >
    ${verb} …
  <//>`;
}

/**
 * @param {import('./api.js').Stats} stats
 * @param {'pending' | 'running' | 'dead'} state
 * @param {string} [handler] default: all
 */
export function sum(stats, state, handler) {
  return total(
    stats.deliveries.filter(
      (one) => one.state === state && (handler === undefined || one.handler === handler),
    ),
  );
}
