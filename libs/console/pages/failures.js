import { html } from 'htm/preact';
import { Table } from './card-table.js';
import { csvAddress, get } from './api.js';
import { Badge, Foreign, Time, counted, number, visible } from './format.js';
import { ShortId } from './payment-fields.js';
import { ActionButton } from './permission.js';
import { Waiting, usePolled } from './polling.js';
import { Redrives } from './redrives.js';
import { eventLink, listLink } from './route.js';

/** @typedef {import('./api.js').FailureGroup} FailureGroup */

/**
 * The failed deliveries, grouped by handler and error.
 *
 * @param {object} props
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Failures({ acted, ask }) {
  const { value: failures, error } = usePolled(
    'failures',
    /** @returns {Promise<import('./api.js').Failures>} */
    (signal) => get('failures', {}, signal),
    acted,
  );
  return html`
    <h1 tabindex="-1">Failures</h1>
    <${Redrives} acted=${acted} />
    ${!failures && html`<${Waiting} error=${error} />`}
    ${
      failures?.groups.length === 0 &&
      html`<p class="empty">
        <strong>No failed delivery.</strong> No delivery is dead, and none waits for a retry.
      </p>`
    }
    ${
      failures !== undefined &&
      failures.groups.length > 0 &&
      html`<p class="quiet note">${summaryOf(failures)}</p>
        <${Groups} groups=${failures.groups.filter(needsSomebody)} ask=${ask} />
        <${Acknowledged}
          groups=${failures.groups.filter((group) => !needsSomebody(group))}
          ask=${ask}
        />
        <nav class="pages" aria-label="Pages">
          <a href=${csvAddress('failures')} download>Download CSV</a>
        </nav>`
    }
  `;
}

/** Whether nobody has acknowledged the group, or it has changed since. @param {FailureGroup} group */
function needsSomebody({ acknowledged }) {
  return acknowledged === null || acknowledged.changed;
}

/**
 * @param {object} props
 * @param {readonly FailureGroup[]} props.groups
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function Acknowledged({ groups, ask }) {
  if (groups.length === 0) return null;
  return html`<h2>Acknowledged</h2>
    <p class="quiet note">A group that gets more deliveries, or fails again, moves up.</p>
    <${Groups} groups=${groups} ask=${ask} />`;
}

/** @param {import('./api.js').Failures} failures */
function summaryOf({ groups, more }) {
  /** @param {FailureGroup['state']} state */
  const sum = (state) =>
    groups.reduce((all, group) => all + (group.state === state ? group.count : 0), 0);
  const counts = `${counted(sum('dead') + sum('retrying'), 'failed delivery')}: ${number(sum('dead'))} dead, ${number(sum('retrying'))} retrying.`;
  const units =
    'Errors that differ only in ids are one group. An event has one delivery per handler, so it can be in several groups.';
  return more
    ? `${counts} Not all: at most 50 groups, and at most the 10,000 newest failed deliveries. ${units}`
    : `${counts} ${units}`;
}

const TITLES = [
  'Error and handler',
  'State',
  'Deliveries',
  'Companies',
  'Last failed',
  'Last 24 hours',
  'Example',
  null,
];

/**
 * @param {object} props
 * @param {readonly FailureGroup[]} props.groups
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function Groups({ groups, ask }) {
  if (groups.length === 0) return null;
  return html`<${Table}
    class="cards failures"
    titles=${TITLES}
    numbers=${['Deliveries', 'Companies']}
  >
    ${groups.map(
      (group) =>
        html`<${Group}
          key=${JSON.stringify([group.handler, group.state, group.error])}
          group=${group}
          ask=${ask}
        />`,
    )}
  <//>`;
}

/**
 * @param {object} props
 * @param {FailureGroup} props.group
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function Group({ group, ask }) {
  const { handler, error, state, count, oldestAt, newestAt, company, eventId } = group;
  const { companies, trend, acknowledged } = group;
  // The list has a filter for pending events. A running delivery is pending again after an error.
  const filter = { state: state === 'dead' ? 'dead' : 'pending', handler, error };
  const target = { filter, handler };
  const label = `${visible(error)}, ${visible(handler)}`;
  const again = state === 'dead' ? 'Redrive …' : 'Run now …';
  return html`<tr role="row">
    <td role="cell" class="what">
      <a href=${listLink(filter)}><${ErrorText} parts=${group.parts} /></a>
      <${Foreign} text=${handler} class="handler" />
      ${acknowledged && html`<${Note} note=${acknowledged} />`}
    </td>
    <td role="cell" class="state"><${Badge} state=${state} /></td>
    <td role="cell" class="number count">
      <span aria-hidden="true" class="quiet">×</span> ${number(count)}
    </td>
    <td role="cell" class="number companies" data-title="Companies">${number(companies)}</td>
    <td role="cell" class="when">
      <small>From</small> <${Time} at=${oldestAt} /><br />
      <small>To</small> <${Time} at=${newestAt} />
    </td>
    <td role="cell" class="hours"><${Trend} counts=${trend} /></td>
    <td role="cell" class="example" data-title="Example">
      <${ShortId} text=${eventId} what="event id" href=${eventLink({ company, id: eventId })} />
    </td>
    <td role="cell" class="act">
      <${ActionButton}
        aria-label=${`${again} ${label}`}
        onClick=${() => ask({ kind: 'redrive', target })}
      >
        ${again} <//
      >${' '}
      <${ActionButton}
        aria-label=${`Acknowledge … ${label}`}
        onClick=${() => ask({ kind: 'acknowledge', group })}
      >
        Acknowledge …
      <//>
      ${
        acknowledged &&
        html`${' '}<${ActionButton}
            aria-label=${`Withdraw … ${label}`}
            onClick=${() => ask({ kind: 'withdraw', group })}
          >
            Withdraw …
          <//>`
      }
    </td>
  </tr>`;
}

/** An error whose ids and numbers, every second part, are grey. @param {{ parts: readonly string[] }} props */
function ErrorText({ parts }) {
  return html`<bdi class="type"
    >${parts.map((part, index) => (index % 2 === 0 ? visible(part) : html`<span class="varying">${visible(part)}</span>`))}</bdi
  >`;
}

/** @param {{ note: NonNullable<FailureGroup['acknowledged']> }} props */
function Note({ note: { who, note, at, changed } }) {
  return html`<small class="ack"
    >${changed && html`<span class="badge changed">changed</span>${' '}`}Acknowledged${
      who !== null && html` by <${Foreign} text=${who} />`
    }${' '}<${Time} at=${at} />: <${Foreign} text=${note}
  /></small>`;
}

const BAR = 3;
const HEIGHT = 18;

/** Bars with the number of failed deliveries in each hour. @param {{ counts: readonly number[] }} props */
function Trend({ counts }) {
  const most = Math.max(1, ...counts);
  const label = `Failed in each of the last ${counts.length} hours, the oldest first: ${counts.map(number).join(', ')}`;
  return html`<svg
    class="trend"
    role="img"
    aria-label=${label}
    width=${counts.length * BAR}
    height=${HEIGHT}
  >
    <title>${label}</title>
    ${counts.map((count, hour) => {
      const height = count === 0 ? 1 : Math.max(3, (HEIGHT * count) / most);
      const top = HEIGHT - height;
      return html`<rect
        x=${hour * BAR}
        y=${top}
        width=${BAR - 1}
        height=${height}
        class=${count === 0 ? 'zero' : ''}
      />`;
    })}
  </svg>`;
}
