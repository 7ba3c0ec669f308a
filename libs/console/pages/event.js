import { html } from 'htm/preact';
import { Table } from './card-table.js';
import { get } from './api.js';
import { Facts, Headers } from './event-facts.js';
import { Badge, Foreign, Time, counted, duration, urgentFirst, visible } from './format.js';
import { Copy, Payload } from './payload.js';
import { ActionButton } from './permission.js';
import { usePolled } from './polling.js';

/** @typedef {import('./api.js').Delivery} Delivery */

/**
 * @param {object} props
 * @param {string} props.company
 * @param {string} props.id
 * @param {string} props.back link to the list with its last filter and page
 * @param {number} props.clockMs the server's clock minus the browser's clock
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function EventPage({ company, id, back, clockMs, acted, ask }) {
  const { value: event, error } = usePolled(
    `${company}\n${id}`,
    // The id is in the query, because browsers remove an id such as ".." from a path.
    /** @returns {Promise<import('./api.js').StoredEvent>} */
    (signal) => get('event', { company, id }, signal),
    acted,
  );
  const backLink = html`<p><a href=${back}>Back to the list</a></p>`;
  if (!event) {
    return html`${backLink}
      <h1 tabindex="-1">Event</h1>
      ${
        error?.status === 404 || error?.status === 400
          ? html`<p class="empty"><strong>No such event.</strong> ${visible(error.message)}</p>`
          : html`<p class="quiet loading">Loading …</p>`
      }`;
  }
  return html`
    ${backLink}
    <h1 tabindex="-1"><${Foreign} text=${event.eventType} /></h1>
    <p class="subject">
      <${Foreign} text=${event.id} class="id" /> <${Copy} text=${event.id} what="id" />
    </p>
    <${Facts} event=${event} />
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      ${
        event.deliveries.length === 0
          ? html`<${NoDelivery} event=${event} ask=${ask} />`
          : urgentFirst(event.deliveries).map(
              (delivery) =>
                html`<${DeliveryCard}
                  key=${delivery.handler}
                  event=${event}
                  delivery=${delivery}
                  clockMs=${clockMs}
                  ask=${ask}
                />`,
            )
      }
    </section>
    <section aria-labelledby="payload">
      <h2 id="payload">Payload</h2>
      <${Payload} payload=${event.payload ?? null} error=${event.bodyError} />
    </section>
    <section aria-labelledby="headers">
      <h2 id="headers">Stored headers</h2>
      <${Headers} headers=${event.headers} />
    </section>
  `;
}

/**
 * @param {object} props
 * @param {import('./api.js').StoredEvent} props.event
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
function NoDelivery({ event, ask }) {
  const { company, id, eventType, stale } = event;
  if (eventType === 'webhook.test') {
    return html`<p class="empty">A test webhook. No handler runs for it.</p>`;
  }
  if (event.pruned) {
    return html`<p class="empty">
      The deliveries were deleted with the body. All were done or skipped.
    </p>`;
  }
  const target = { events: [{ company, id }] };
  const why = stale
    ? html`<strong>Stale.</strong> The event was too old when it was received: it may be a replay of
        an event whose id is no longer stored.`
    : html`<strong>Unhandled.</strong> No handler matched this event when it was received.`;
  return html`<div class="empty">
    <p>${why}</p>
    <${ActionButton} onClick=${() => ask({ kind: 'redrive', target })}>
      Run the existing handlers …
    <//>
  </div>`;
}

/**
 * @param {object} props
 * @param {import('./api.js').StoredEvent} props.event
 * @param {Delivery} props.delivery
 * @param {number} props.clockMs
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function DeliveryCard({ event, delivery, clockMs, ask }) {
  const { company, id } = event;
  const { handler, state, attempts, lastError, frames, history } = delivery;
  const target = { events: [{ company, id }], handler };
  const done = state === 'done';
  const again = done ? 'Run again …' : state === 'pending' ? 'Run now …' : 'Redrive …';
  const name = visible(handler);
  return html`<article class=${`delivery ${state}`} aria-label=${name}>
    <header>
      <h3><bdi>${name}</bdi></h3>
      <${Badge} state=${state} />
      <span class="quiet"
        >${counted(attempts, 'attempt')}<${Due} delivery=${delivery} clockMs=${clockMs}
      /></span>
      ${
        // Deliveries can run again only with a stored body.
        !event.pruned &&
        html`<span class="buttons">
          ${
            state !== 'running' &&
            html`<${ActionButton}
              aria-label=${`${again} ${name}`}
              onClick=${() => ask({ kind: 'redrive', target, done })}
            >
              ${again}
            <//>`
          }
          ${
            (state === 'pending' || state === 'dead') &&
            html`<${ActionButton}
              aria-label=${`Skip … ${name}`}
              onClick=${() => ask({ kind: 'skip', target })}
            >
              Skip …
            <//>`
          }
        </span>`
      }
    </header>
    ${lastError && !done && history.at(-1)?.error !== lastError && html`<p class="trouble"><${Foreign} text=${lastError} /></p>`}
    ${frames && html`<${Frames} frames=${frames} />`}
    ${history.length > 0 && html`<${History} history=${history} name=${name} />`}
  </article>`;
}

/** The application's own stack frames of the last failed attempt, folded. @param {{ frames: string }} props */
function Frames({ frames }) {
  return html`<details class="frames">
    <summary>Where the last failed attempt threw</summary>
    <pre>${visible(frames)}</pre>
  </details>`;
}

/** @param {{ delivery: Delivery, clockMs: number }} props */
function Due({ delivery: { state, dueAt, finishedAt }, clockMs }) {
  if (finishedAt !== null) return html`, ${state} <${Time} at=${finishedAt} />`;
  if (dueAt === null) return null;
  // The clocks of the store, the server and this browser can differ by a few seconds.
  const inMs = Date.parse(dueAt) - (Date.now() + clockMs);
  const about = inMs < 10_000 ? '' : ` (in about ${duration(inMs)})`;
  return html`, due <${Time} at=${dueAt} />${about}`;
}

/** @param {{ history: Delivery['history'], name: string }} props */
function History({ history, name }) {
  const titles = ['Attempt', 'Started', 'Took', 'Outcome'];
  return html`<${Table} class="history" label=${`Attempts of ${name}`} titles=${titles}>
    ${history.toReversed().map(
      ({ attempt, startedAt, endedAt, outcome, error }, index) =>
        html`<tr role="row" key=${history.length - index}>
          <td role="cell" class="attempt">${attempt}</td>
          <td role="cell"><${Time} at=${startedAt} /></td>
          <td role="cell">${duration(Date.parse(endedAt) - Date.parse(startedAt))}</td>
          <td role="cell" class="outcome">
            <${Badge} state=${outcome} />
            ${error && html`<${Foreign} text=${error} class="error" />`}
            ${outcome === 'lost' && html`${' '}<small>the process ended or lost its lease</small>`}
          </td>
        </tr>`,
    )}
  <//>`;
}
