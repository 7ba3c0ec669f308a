import { html } from 'htm/preact';
import { get } from './api.js';
import { CardTable } from './card-table.js';
import { Badge, Foreign, Time, ago, counted, duration, number } from './format.js';
import { ForgetButton } from './handlers.js';
import { usePolled, Waiting } from './polling.js';

/** @typedef {import('./api.js').Process} Process */
/** @typedef {import('./api.js').Service} Service */

/** The colors of the states of deliveries. */
const COLORS = { running: 'done', ended: 'skipped', lost: 'dead' };

/**
 * The processes of the last hour, where the handlers run, and the payments service as the processes see it.
 *
 * @param {object} props
 * @param {import('./api.js').Handler[]} props.handlers
 * @param {number} props.acted
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Processes({ handlers, acted, ask }) {
  const { value, error } = usePolled(
    'processes',
    /** @returns {Promise<import('./api.js').ProcessPage>} */
    (signal) => get('processes', {}, signal),
    acted,
  );
  if (value === undefined)
    return html`<h1 tabindex="-1">Processes</h1>
      <${Waiting} error=${error} />`;
  const { processes, services } = value;
  const running = processes.filter(({ state }) => state === 'running');
  return html`
    <h1 tabindex="-1">Processes</h1>
    <section aria-labelledby="running">
      <h2 id="running">${`${counted(running.length, 'process')} running`}</h2>
      <${ProcessTable} processes=${processes} />
    </section>
    <section aria-labelledby="slots">
      <h2 id="slots">Handlers</h2>
      <${HandlerTable} handlers=${handlers} running=${running} ask=${ask} />
    </section>
    <section aria-labelledby="service">
      <h2 id="service">Payments service</h2>
      ${
        services.length === 0
          ? html`<p class="empty">
              No process has requested a token or made a call in the last hour.
            </p>`
          : html`<${ServiceTable} services=${services} />`
      }
    </section>
  `;
}

/** @param {{ processes: Process[] }} props */
function ProcessTable({ processes }) {
  return html`<${CardTable}
    label="Processes"
    titles=${['Process', 'State', 'Last report', 'Started', 'nestjs-payments', 'Running', 'Webhook requests, last hour']}
    rows=${processes.map((process) => ({
      key: process.id,
      cells: [
        html`<${Foreign} text=${process.host} />${' '}
          <span class="quiet">pid ${process.pid}${process.here && ', this process'}</span>`,
        html`<${Badge} state=${COLORS[process.state]}>${process.state}<//>${' '}
          ${process.endedAtMs !== null && html`<${At} ms=${process.endedAtMs} />`}`,
        process.here ? 'now' : `${duration(process.seenMs)} ago`,
        html`<${At} ms=${process.startedAtMs} />`,
        process.version,
        slotsOf(process.handlers),
        requestsOf(process.requests),
      ],
    }))}
  />`;
}

/** @param {readonly import('./api.js').HandlerLoad[]} loads */
function slotsOf(loads) {
  /** @param {'running' | 'slots'} field */
  const sum = (field) => loads.reduce((all, load) => all + load[field], 0);
  return `${number(sum('running'))} of ${counted(sum('slots'), 'slot')}`;
}

/** @param {Process['requests']} requests */
function requestsOf(requests) {
  /** @param {boolean} accepted */
  const sum = (accepted) =>
    requests
      .filter(({ code }) => (code === null) === accepted)
      .flatMap(({ perMinute }) => perMinute)
      .reduce((all, count) => all + count, 0);
  return `${number(sum(true))} accepted, ${number(sum(false))} rejected`;
}

/**
 * @param {object} props
 * @param {import('./api.js').Handler[]} props.handlers
 * @param {Process[]} props.running
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function HandlerTable({ handlers, running, ask }) {
  return html`<${CardTable}
    label="Handlers"
    titles=${['Handler', 'Processes', 'Running', null]}
    rows=${handlers.map(({ name, lastSeenAt }) => {
      const loads = running.flatMap((process) =>
        process.handlers.filter((handler) => handler.name === name),
      );
      const lost = loads.length === 0;
      return {
        key: name,
        cells: [
          html`<${Foreign} text=${name} />`,
          lost
            ? html`<${Badge} state="dead">no process<//> Its deliveries
                wait.${lastSeenAt !== null && ` Last seen ${ago(lastSeenAt)}.`}`
            : counted(loads.length, 'process'),
          lost ? '–' : slotsOf(loads),
          lost && html`<${ForgetButton} handler=${name} ask=${ask} />`,
        ],
      };
    })}
  />`;
}

/** @param {{ services: Service[] }} props */
function ServiceTable({ services }) {
  return html`<${CardTable}
      label="Payments service"
      titles=${['Company', 'Token', 'Calls', 'Failed', 'Median', 'Slowest', 'Last error']}
      rows=${services.map(
        ({ company, token, calls, failedCalls, p50Ms, slowestMs, lastError }) => ({
          key: company,
          cells: [
            html`<${Foreign} text=${company} />`,
            token === null
              ? html`<span class="quiet">not requested</span>`
              : html`<${Badge} state=${token.errorCode === null ? 'done' : 'dead'}
                    >${token.errorCode ?? 'issued'}<//
                  >${' '}<${At} ms=${token.atMs} />`,
            number(calls),
            number(failedCalls),
            timeOf(p50Ms),
            timeOf(slowestMs),
            lastError === null
              ? html`<span class="quiet">none</span>`
              : html`<code>${lastError.errorCode}</code>${' '}
                  ${lastError.status !== null && `(status ${lastError.status}) `}<${At}
                    ms=${lastError.atMs}
                  />`,
          ],
        }),
      )}
    />
    <p class="quiet">
      Calls since each process started. The times are of the newest 20 calls of each process, with
      all attempts.
    </p>`;
}

/** @param {{ ms: number }} props */
function At({ ms }) {
  return html`<${Time} at=${new Date(ms).toISOString()} />`;
}

/** @param {number | null} ms */
function timeOf(ms) {
  return ms === null ? '–' : duration(ms);
}
