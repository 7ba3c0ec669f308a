import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { expectedTime, scopeOf } from './actions.js';
import { get, post } from './api.js';
import { Badge, Foreign, Time, counted, number, visible } from './format.js';
import { ActionButton } from './permission.js';
import { usePolled } from './polling.js';

/** @typedef {import('./api.js').RedriveJob} RedriveJob */

/**
 * The redrives of all operators that run, or have ended within the last hour.
 *
 * @param {object} props
 * @param {number} props.acted number of actions performed
 */
export function Redrives({ acted }) {
  const { value, reload } = usePolled(
    'redrives',
    /** @returns {Promise<{ redrives: RedriveJob[] }>} */
    (signal) => get('redrives', {}, signal),
    acted,
  );
  const [error, setError] = useState('');
  /** @param {string} id */
  const stop = async (id) => {
    setError('');
    await post('stop', { id }).catch((thrown) => setError(String(thrown.message)));
    reload();
  };
  const jobs = value?.redrives ?? [];
  if (jobs.length === 0) return null;
  const list = jobs.map(
    (job) => html`<${Redrive} key=${job.id} job=${job} onStop=${() => stop(job.id)} />`,
  );
  return html`<section class="redrives" aria-label="Redrives">
    ${
      jobs.length === 1
        ? list
        : html`<details>
            <summary>${summaryOf(jobs)}</summary>
            ${list}
          </details>`
    }
    ${error && html`<p class="trouble" role="alert">${visible(error)}</p>`}
  </section>`;
}

/** Several redrives take one line, so that they do not push the list out of the window. @param {readonly RedriveJob[]} jobs */
function summaryOf(jobs) {
  /** @param {(job: RedriveJob) => number} count */
  const sum = (count) => jobs.reduce((all, job) => all + count(job), 0);
  const running = sum(({ state }) => Number(state === 'running'));
  const [events, failed] = [sum((job) => job.events), sum((job) => job.failed)];
  const all = sum((job) => Math.max(job.total.events, job.events));
  return html`${`${jobs.length} redrives, ${number(running)} running: ${number(events)} of ${counted(all, 'event')}`}
  ${failed > 0 && html`, <span class="failures-so-far">${number(failed)} failed again</span>`}`;
}

/** @param {{ job: RedriveJob, onStop: () => void }} props */
function Redrive({ job, onStop }) {
  const { query, state, events, failed, total, ratePerSecond, startedBy, startedAt } = job;
  // The count was made at the start. A redrive that another process continued may have counted fewer.
  const all = Math.max(total.events, events);
  const what = whatOf(query);
  const left = expectedTime(all - events, ratePerSecond);
  return html`<div class="redrive">
    <strong><${Foreign} text=${what} /></strong>
    <${Badge} state=${state} />
    ${
      state === 'running' &&
      html`<progress aria-label=${`Progress of ${visible(what)}`} max=${all} value=${events} />`
    }
    <span>
      ${number(events)} of ${counted(all, 'event')}
      ${state === 'running' && `, ${number(ratePerSecond)} per second, ${left} left`}
      ${failed > 0 && html`, <span class="failures-so-far">${number(failed)} failed again</span>`}
    </span>
    <span class="quiet">
      started by <${Foreign} text=${startedBy ?? 'unknown'} />, <${Time} at=${startedAt} />
    </span>
    ${job.error !== null && html`<${Foreign} text=${job.error} class="error" />`}
    ${
      state === 'running' &&
      html`<${ActionButton} aria-label=${`Stop the redrive: ${visible(what)}`} onClick=${onStop}
        >Stop<//
      >`
    }
  </div>`;
}

/** Describes what is redriven, as the dialog does. @param {RedriveJob['query']} query */
function whatOf({ force = false, handlers, handler, to: _to, ...filter }) {
  const names = handlers?.join(', ') ?? handler;
  const target = { filter: /** @type {any} */ (filter), ...(names && { handler: names }) };
  return scopeOf({ kind: 'redrive', target }, force);
}
