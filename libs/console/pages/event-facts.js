import { html } from 'htm/preact';
import { Foreign, Time } from './format.js';
import { money } from './payment-fields.js';
import { Copy } from './payload.js';
import { paymentLink } from './route.js';

/** @type {Record<string, string>} */
const SOURCES = {
  webhook: 'webhook: the service sent it',
  poll: 'poll: the module asked the service',
  overdue: 'overdue: no event came in time',
};

/** @param {{ event: import('./api.js').StoredEvent }} props */
export function Facts({ event }) {
  const { company, source, receivedAt, occurredAt, orderingKey, reference } = event;
  const trace = traceOf(event);
  return html`<dl class="facts">
    ${reference !== null && fact('Reference', html`<a href=${paymentLink(company, reference)}><${Foreign} text=${reference} /></a>`)}
    ${event.amount !== null && fact('Amount', money(event))}
    ${
      orderingKey !== null &&
      fact(
        'Transaction',
        html`<a href=${paymentLink(company, orderingKey)}
            ><${Foreign} text=${orderingKey} class="id" /></a
          >${' '} <${Copy} text=${orderingKey} what="transaction" small=${true} />`,
      )
    }
    ${fact('Received', html`<${Time} at=${receivedAt} />`)}
    ${fact('Occurred', html`<${Time} at=${occurredAt} />`)}
    ${fact('Company', html`<${Foreign} text=${company} />`)}
    ${fact('Source', SOURCES[source] ?? source)}
    ${
      trace !== undefined &&
      fact(
        'Trace id',
        html`<span class="id">${trace}</span>
          <${Copy} text=${trace} what="trace id" small=${true} />`,
      )
    }
  </dl>`;
}

/** @param {string} title @param {unknown} value */
export function fact(title, value) {
  return html`<div>
    <dt>${title}</dt>
    <dd>${value}</dd>
  </div>`;
}

/** The trace id of the stored header `traceparent`. @param {import('./api.js').StoredEvent} event */
export function traceOf({ headers }) {
  return /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-/.exec(headers.traceparent ?? '')?.[1];
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
