import { html } from 'htm/preact';
import { Foreign, Time } from './format.js';
import { listLink } from './route.js';

/** @type {Record<string, string>} */
const SOURCES = {
  webhook: 'webhook: the service sent it',
  poll: 'poll: the module asked the service',
  overdue: 'overdue: no event came in time',
};

/** @param {{ event: import('./api.js').StoredEvent }} props */
export function Facts({ event: { company, source, receivedAt, occurredAt, orderingKey } }) {
  return html`<dl class="facts">
    <div>
      <dt>Received</dt>
      <dd><${Time} at=${receivedAt} /></dd>
    </div>
    <div>
      <dt>Source</dt>
      <dd>${SOURCES[source] ?? source}</dd>
    </div>
    <div>
      <dt>Occurred</dt>
      <dd><${Time} at=${occurredAt} /></dd>
    </div>
    <div>
      <dt>Company</dt>
      <dd><${Foreign} text=${company} /></dd>
    </div>
    ${
      orderingKey !== null &&
      html`<div>
        <dt>Ordering key</dt>
        <dd>
          <a href=${listLink({ search: orderingKey })}
            ><${Foreign} text=${orderingKey} class="id"
          /></a>
        </dd>
      </div>`
    }
  </dl>`;
}

/** @param {{ repeats: import('./api.js').StoredEvent['repeats'] }} props */
export function Repeats({ repeats }) {
  return html`<section aria-labelledby="repeats">
    <h2 id="repeats">Repeats</h2>
    <p class="quiet note">
      Other events of this type and transaction that were received later. They were not stored and
      not handled, because this type is processed once per transaction. This list has at most the
      last 20.
    </p>
    <ul class="repeats">
      ${repeats.map(
        ({ id, receivedAt }) =>
          html`<li key=${id}>
            <${Foreign} text=${id} class="id" />${' '}<small
              >received <${Time} at=${receivedAt}
            /></small>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** @param {{ headers: Record<string, string> }} props */
export function Headers({ headers }) {
  const names = Object.keys(headers).toSorted();
  if (names.length === 0) return html`<p class="quiet">None.</p>`;
  return html`<dl class="headers">
    ${names.map(
      (name) =>
        html`<div key=${name}>
          <dt><${Foreign} text=${name} /></dt>
          <dd><${Foreign} text=${headers[name]} class="id" /></dd>
        </div>`,
    )}
  </dl>`;
}
