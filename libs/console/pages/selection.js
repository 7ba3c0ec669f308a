import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import { counted } from './format.js';
import { ActionButton } from './permission.js';
import { keyOf } from './rows.js';

/**
 * The selected events, with the buttons for their actions.
 *
 * @param {object} props
 * @param {readonly import('./api.js').StoredEvent[]} props.events the events on the page
 * @param {ReadonlySet<string>} props.selected
 * @param {(keys: ReadonlySet<string>) => void} props.onSelect
 * @param {Record<string, string>} props.filter
 * @param {boolean} props.more whether there are other pages
 * @param {boolean} props.allMatching
 * @param {(all: boolean) => void} props.onAllMatching
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Selection(props) {
  const { events, selected, onSelect, filter, more, allMatching, onAllMatching, ask } = props;
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  const chosen = events.filter((event) => selected.has(keyOf(event)));
  const wholePage = chosen.length === events.length;
  useEffect(() => {
    if (box.current) box.current.indeterminate = !allMatching && chosen.length > 0 && !wholePage;
  });

  const any = allMatching || chosen.length > 0;
  // A filter with a handler selects only the deliveries to this handler.
  const handler = filter.handler ? { handler: filter.handler } : {};
  const target = allMatching
    ? { filter, ...handler }
    : { events: chosen.map(({ company, id }) => ({ company, id })), ...handler };
  const done = filter.state === 'done';
  const toggle = () => {
    onAllMatching(false);
    onSelect(new Set(wholePage || allMatching ? [] : events.map(keyOf)));
  };
  return html`<div class="selection" role="group" aria-label="Selection">
    <label class="check">
      <input ref=${box} type="checkbox" checked=${allMatching || wholePage} onChange=${toggle} />
      All on this page
    </label>
    ${
      wholePage &&
      more &&
      !allMatching &&
      html`<button type="button" class="link" onClick=${() => onAllMatching(true)}>
        Select all events that match the filter
      </button>`
    }
    <span role="status">${selectionText(allMatching, chosen.length)}</span>
    <span class="buttons">
      <${ActionButton} disabled=${!any} onClick=${() => ask({ kind: 'redrive', target, done })}>
        ${done ? 'Run again …' : 'Redrive …'}
      <//>
      <${ActionButton} disabled=${!any} onClick=${() => ask({ kind: 'skip', target })}> Skip … <//>
    </span>
  </div>`;
}

/**
 * @param {boolean} allMatching
 * @param {number} chosen
 */
function selectionText(allMatching, chosen) {
  if (allMatching) return 'all matching events selected';
  return chosen > 0 ? `${counted(chosen, 'event')} selected` : '';
}
