import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem } from './connection.js';
import { Moment } from './moment.js';
import { call, useAction } from './server.js';

const LOOKS = { delivered: 'good', failed: 'bad', dropped: 'bad', cancelled: 'bad' };

/** One attempt: a line, and behind it everything that was sent and answered. */
export function Delivery({ delivery, onChanged, onSearch }) {
  const [open, setOpen] = useState(false);
  const { id, eventType, companyId, state, status, durationMs, createdAt, sentAt } = delivery;
  const { faults, cause, attempt } = delivery;
  const panel = `delivery-${id}`;
  const about = [
    companyId,
    cause === 'event' ? `attempt ${attempt}` : `${cause}, attempt ${attempt}`,
    ...(durationMs === undefined ? [] : [`${durationMs} ms`]),
  ];
  return html`<li class="delivery">
    <button
      class="line"
      aria-expanded=${open}
      aria-controls=${panel}
      onClick=${() => setOpen(!open)}
    >
      <span class="when"><${Moment} at=${sentAt ?? createdAt} /></span>
      <span class=${`state ${LOOKS[state] ?? ''}`}>${state}${status ? ` ${status}` : ''}</span>
      <span class="what">${eventType}</span>
      <span class="quiet">${about.join(' · ')}</span>
      ${faults.length > 0 && html`<span class="struck">${faults.join(', ')}</span>`}
    </button>
    ${open && html`<${Detail} ...${{ id: panel, delivery, onChanged, onSearch }} />`}
  </li>`;
}

function Detail({ id, delivery, onChanged, onSearch }) {
  const { record, problem } = useRecord(delivery);
  const again = useAction();
  const redeliver = () =>
    again.run(async () => {
      const sending = call('POST', `deliveries/${encodeURIComponent(delivery.id)}/redeliver`);
      onChanged();
      await sending;
      onChanged();
    });
  const { transactionId, eventId } = delivery;
  return html`<div id=${id} class="detail">
    <p class="actions">
      <button disabled=${again.busy} onClick=${redeliver}>
        ${again.busy ? 'Redelivering…' : 'Redeliver'}
      </button>
      ${
        transactionId &&
        html`<button onClick=${() => onSearch(transactionId)}>Only this transaction</button>`
      }
    </p>
    <${Problem} text=${again.problem ?? problem} />
    <dl class="facts">
      <${Fact} name="Event">${eventId}<//>
      ${transactionId && html`<${Fact} name="Transaction">${transactionId}<//>`}
      <${Fact} name="Environment">${delivery.environment}<//>
      ${delivery.copy > 0 && html`<${Fact} name="Copy">${delivery.copy}<//>`}
      <${Fact} name="Faults">${delivery.faults.join(', ') || 'none struck'}<//>
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
                <${Headers} of=${record.request.headers} name="Headers sent" />
                <${Body} text=${record.request.body} name="Body sent" />`
            : html`<p class="quiet">Nothing was sent.</p>`
        }
        <h3>Answer</h3>
        ${
          record.answer
            ? html`<p>
                  <b>${record.answer.status}</b> ${
                    delivery.durationMs !== undefined && `after ${delivery.durationMs} ms`
                  }
                </p>
                <${Headers} of=${record.answer.headers} name="Headers answered" />
                <${Body} text=${record.answer.body} name="Body answered" />`
            : html`<p class="quiet">None came.</p>`
        }`
    }
  </div>`;
}

/** The whole record, fetched when it is opened and again whenever its line says something new. */
function useRecord(delivery) {
  const [record, setRecord] = useState(/** @type {any} */ (undefined));
  const { problem, run } = useAction();
  useEffect(() => {
    // An earlier answer may come later, and would say what is not so any more.
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

/** A body as the text it is, and on request as JSON set out to be read. */
function Body({ text, name }) {
  const [pretty, setPretty] = useState(false);
  if (text === '') return html`<p class="quiet">No body.</p>`;
  const setOut = prettify(text);
  return html`${
      setOut !== undefined &&
      html`<label class="check">
        <input type="checkbox" checked=${pretty} onChange=${() => setPretty(!pretty)} />
        Set out to be read<span class="unseen">: ${name}</span>
      </label>`
    }
    <pre tabindex="0" aria-label=${name}>${pretty && setOut !== undefined ? setOut : text}</pre>`;
}

/**
 * JSON with line ends and indents, its values as they came: numbers keep their digits, strings their escapes. Nobody
 * follows it deeper than 40 levels, and each line would carry it.
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
