import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem } from './components.js';
import { Time, formatAmount } from './format.js';
import { call, useAction } from './api.js';

const STYLES = { delivered: 'good', failed: 'bad', dropped: 'bad', cancelled: 'bad' };

/**
 * One attempt: a line that expands to the request and the response. The page's URL contains the id of the attempt that
 * was expanded last. `linked` is true if the URL contains the id of the attempt.
 */
export function Delivery({ delivery, currency, withCompany, linked, onLink, onChanged, onSearch }) {
  const [open, setOpen] = useState(linked);
  const { id, eventType, companyId, state, status, durationMs, createdAt, sentAt } = delivery;
  const { faults, cause, attempt, externalReference, amount } = delivery;
  const panel = `delivery-${id}`;
  const toggle = () => {
    setOpen(!open);
    if (!open) onLink(id);
    else if (linked) onLink('');
  };
  const details = [
    ...(withCompany ? [companyId] : []),
    cause === 'event' || faults.includes(cause)
      ? `attempt ${attempt}`
      : `${cause}, attempt ${attempt}`,
    ...(durationMs === undefined ? [] : [`${durationMs} ms`]),
  ];
  return html`<li class="delivery">
    <button class="line" aria-expanded=${open} aria-controls=${panel} onClick=${toggle}>
      <span class="when"><${Time} at=${sentAt ?? createdAt} /></span>
      <span class=${`state ${STYLES[state] ?? ''}`}>${state}${status ? ` ${status}` : ''}</span>
      <span class="what">${eventType}</span>
      <span class="reference">${externalReference ?? '–'}</span>
      <span class="money">${amount === undefined ? '–' : formatAmount(amount, currency)}</span>
      <span class="quiet attempt">
        ${details.join(' · ')}
        ${faults.length > 0 && html` <span class="applied-faults">${faults.join(', ')}</span>`}
      </span>
    </button>
    ${open && html`<${Detail} ...${{ id: panel, delivery, currency, onChanged, onSearch }} />`}
  </li>`;
}

function Detail({ id, delivery, currency, onChanged, onSearch }) {
  const { record, problem } = useRecord(delivery);
  const redelivery = useAction();
  const redeliver = () =>
    redelivery.run(async () => {
      const sending = call('POST', `deliveries/${encodeURIComponent(delivery.id)}/redeliver`);
      onChanged();
      await sending;
      onChanged();
    });
  const { transactionId, eventId, externalReference, amount } = delivery;
  return html`<div id=${id} class="detail">
    <p class="actions">
      <button disabled=${redelivery.busy} onClick=${redeliver}>
        ${redelivery.busy ? 'Redelivering…' : 'Redeliver'}
      </button>
      ${
        transactionId &&
        html`<button onClick=${() => onSearch(transactionId)}>Show only this transaction</button>`
      }
    </p>
    <${Problem} text=${redelivery.problem ?? problem} />
    <dl class="facts">
      <${Fact} name="Event">${eventId}<//>
      ${externalReference !== undefined && html`<${Fact} name="Reference">${externalReference}<//>`}
      ${amount !== undefined && html`<${Fact} name="Amount">${formatAmount(amount, currency)}<//>`}
      ${transactionId && html`<${Fact} name="Transaction">${transactionId}<//>`}
      <${Fact} name="Company">${delivery.companyId}<//>
      <${Fact} name="Environment">${delivery.environment}<//>
      ${delivery.copy > 0 && html`<${Fact} name="Copy">${delivery.copy}<//>`}
      <${Fact} name="Faults">${delivery.faults.join(', ') || 'none'}<//>
      ${
        delivery.failure &&
        html`<${Fact} name="Failure">${delivery.failure.code}: ${delivery.failure.message}<//>`
      }
    </dl>
    ${
      record &&
      html`<h3>Request</h3>
        ${
          record.request
            ? html`<p class="url">POST ${record.request.url}</p>
                <${Headers} of=${record.request.headers} name="Request headers" />
                <${Body} text=${record.request.body} name="Request body" />`
            : html`<p class="quiet">Nothing was sent.</p>`
        }
        <h3>Response</h3>
        ${
          record.response
            ? html`<p>
                  <b>${record.response.status}</b> ${
                    delivery.durationMs !== undefined && `after ${delivery.durationMs} ms`
                  }
                </p>
                <${Headers} of=${record.response.headers} name="Response headers" />
                <${Body} text=${record.response.body} name="Response body" />`
            : html`<p class="quiet">No response.</p>`
        }`
    }
  </div>`;
}

/**
 * Returns the complete record of a delivery. The page requests the record when the user opens the delivery, and when
 * the state of the delivery changes.
 */
function useRecord(delivery) {
  const [record, setRecord] = useState(/** @type {any} */ (undefined));
  const { problem, run } = useAction();
  useEffect(() => {
    // Ignores the late response to an earlier request, because this response would be out of date.
    let current = true;
    void run(async () => {
      const found = await call('GET', `deliveries/${encodeURIComponent(delivery.id)}`);
      if (current) setRecord(found);
    });
    return () => {
      current = false;
    };
  }, [delivery.id, delivery.state]);
  return { record, problem };
}

function Fact({ name, children }) {
  return html`<div>
    <dt>${name}</dt>
    <dd>${children}</dd>
  </div>`;
}

function Headers({ of, name }) {
  return html`<dl class="facts headers" aria-label=${name}>
    ${Object.entries(of).map(
      ([header, value]) => html`<${Fact} key=${header} name=${header}>${value}<//>`,
    )}
  </dl>`;
}

/** A body as plain text or, if the user selects this, as formatted JSON. */
function Body({ text, name }) {
  const [pretty, setPretty] = useState(false);
  if (text === '') return html`<p class="quiet">No body.</p>`;
  const formatted = prettify(text);
  return html`${
      formatted !== undefined &&
      html`<label class="check">
        <input type="checkbox" checked=${pretty} onChange=${() => setPretty(!pretty)} />
        Format as JSON<span class="visually-hidden">: ${name}</span>
      </label>`
    }
    <pre tabindex="0" aria-label=${name}>
${pretty && formatted !== undefined ? formatted : text}</pre>`;
}

/**
 * Formats JSON with line breaks and indentation. Values keep their original text, such as the digits of numbers and the
 * escapes of strings. Levels deeper than 40 are not indented further, because wide indentation in every line would make
 * the text much longer.
 */
function prettify(text) {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  let depth = 0;
  const line = () => `\n${'  '.repeat(Math.min(depth, 40))}`;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s"{}[\],:]+/g) ?? [];
  return tokens
    .map((token) => {
      if (token === '}' || token === ']') {
        depth -= 1;
        return line() + token;
      }
      if (token === '{' || token === '[') depth += 1;
      if (token === '{' || token === '[' || token === ',') return token + line();
      if (token === ':') return ': ';
      return /^[{[]/.test(token) ? token.replace(/\s+/, '') : token;
    })
    .join('');
}
