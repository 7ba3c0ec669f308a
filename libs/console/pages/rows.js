import { html } from 'htm/preact';
import { Badge, Foreign, Time, urgentFirst, visible } from './format.js';
import { ShortId, money, shortened } from './payment-fields.js';
import { Copy } from './payload.js';
import { eventLink, paymentLink } from './route.js';

/** @typedef {import('./api.js').StoredEvent} StoredEvent */

/**
 * Returns a key that identifies an event. The key is unique, because neither the company nor the id can contain a line
 * break.
 *
 * @param {{ company: string, id: string }} event
 */
export function keyOf({ company, id }) {
  return `${company}\n${id}`;
}

/**
 * @param {object} props
 * @param {readonly StoredEvent[]} props.events
 * @param {boolean} props.companies whether to show the company of each event
 * @param {ReadonlySet<string>} props.selected
 * @param {boolean} props.allMatching whether all matching events are selected, also those of other pages
 * @param {(keys: ReadonlySet<string>) => void} props.onSelect
 */
export function Rows({ events, companies, selected, allMatching, onSelect }) {
  /** @param {string} key */
  const toggle = (key) => {
    const keys = new Set(allMatching ? events.map(keyOf) : selected);
    if (!keys.delete(key)) keys.add(key);
    onSelect(keys);
  };
  return html`<table class="cards events" role="table">
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader" scope="col" class="pick"><span class="unseen">Selected</span></th>
        <th role="columnheader" scope="col" class="what">Event</th>
        <th role="columnheader" scope="col" class="payment">Payment</th>
        <th role="columnheader" scope="col" class="amount number">Amount</th>
        ${companies && html`<th role="columnheader" scope="col" class="company">Company</th>`}
        <th role="columnheader" scope="col">Deliveries</th>
        <th role="columnheader" scope="col" class="when">Received</th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${events.map((event) => {
        const key = keyOf(event);
        return html`<tr role="row" key=${key}>
          <td role="cell" class="pick">
            <label
              ><input
                type="checkbox"
                checked=${allMatching || selected.has(key)}
                aria-label=${`Select ${visible(event.id)}`}
                onChange=${() => toggle(key)}
            /></label>
          </td>
          <td role="cell" class="what"><${Name} event=${event} /></td>
          <td role="cell" class="payment"><${Payment} event=${event} /></td>
          <td role="cell" class="amount number">${money(event)}</td>
          ${companies && html`<td role="cell" class="company" data-title="Company"><${Foreign} text=${event.company} /></td>`}
          <td role="cell" class="deliveries"><${Deliveries} event=${event} /></td>
          <td role="cell" class="when"><${Time} at=${event.receivedAt} /></td>
        </tr>`;
      })}
    </tbody>
  </table>`;
}

/** The type and the id of an event, as a link to the page of the event. @param {{ event: StoredEvent }} props */
function Name({ event }) {
  return html`<span class="short">
    <a href=${eventLink(event)}>
      <${Foreign} text=${event.eventType} class="type" />
      <bdi class="id" title=${visible(event.id)}>${visible(shortened(event.id))}</bdi>
    </a>
    <${Copy} text=${event.id} what="event id" small=${true} inRow=${true} />
  </span>`;
}

/** @param {{ event: StoredEvent }} props */
function Payment({ event: { company, reference, orderingKey } }) {
  return html`
    ${reference !== null && html`<${Foreign} text=${reference} class="reference" />`}
    ${
      orderingKey !== null &&
      html`<${ShortId}
        text=${orderingKey}
        what="transaction"
        href=${paymentLink(company, orderingKey)}
      />`
    }
  `;
}

/** @param {{ event: StoredEvent }} props */
function Deliveries({ event: { deliveries, eventType, pruned, stale } }) {
  // A test webhook needs no handler.
  if (deliveries.length === 0 && eventType === 'webhook.test') return html`<small>test</small>`;
  if (pruned) return html`<small>deleted</small>`;
  if (deliveries.length === 0) return html`<${Badge} state=${stale ? 'stale' : 'unhandled'} />`;
  return html`<ul>
    ${urgentFirst(deliveries).map(
      ({ handler, state, attempts, lastError }) =>
        html`<li key=${handler}>
          <${Badge} state=${state} />${' '}
          <span
            ><${Foreign}
              text=${handler}
            />${attempts > 1 && html` <small>${attempts} attempts</small>`}</span
          >${' '}
          ${lastError && state !== 'done' && html`<bdi class="error" title=${visible(lastError)}>${visible(lastError)}</bdi>`}
        </li>`,
    )}
  </ul>`;
}
