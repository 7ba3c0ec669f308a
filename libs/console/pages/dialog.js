import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  consequenceOf,
  DEFAULT_RATE,
  expectedTime,
  isOfDeliveries,
  perform,
  resultOf,
  scopeOf,
  titleOf,
  verbOf,
} from './actions.js';
import { ApiError } from './api.js';
import { visible } from './format.js';

/**
 * The texts that an operator enters in the dialog of an action.
 *
 * @type {Record<string, { name: 'reason' | 'until' | 'note', label: string, type: string, maxlength?: number, required?: boolean }[]>}
 */
const fields = {
  acknowledge: [{ name: 'note', label: 'Note', type: 'text', maxlength: 500, required: true }],
  close: [
    {
      name: 'note',
      label: 'Note: why do you close it?',
      type: 'text',
      maxlength: 500,
      required: true,
    },
  ],
  pause: [
    { name: 'reason', label: 'Why (optional)', type: 'text', maxlength: 500 },
    { name: 'until', label: 'Ends by itself at (optional)', type: 'datetime-local' },
  ],
};

/**
 * Asks for confirmation of an action and shows how many deliveries it would change. If the action fails, the dialog stays open
 * and shows the reason.
 *
 * @param {object} props
 * @param {import('./actions.js').Action} props.action
 * @param {(notice: import('./actions.js').Notice) => void} props.onDone
 * @param {() => void} props.onCancel
 */
export function Confirm({ action, onDone, onCancel }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const cancel = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const [force, setForce] = useState(false);
  const [rate, setRate] = useState('');
  const [count, setCount] = useState(
    /** @type {import('./api.js').SelectionResult | null} */ (null),
  );
  const [uncounted, setUncounted] = useState(false);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const counts = isOfDeliveries(action);
  const ratePerSecond = rate === '' ? undefined : Number(rate);
  const [texts, setTexts] = useState({ note: '', reason: '', until: '' });
  const [note, reason] = [texts.note.trim(), texts.reason.trim()];
  const choice = { force, ratePerSecond, note, reason, until: texts.until, newestOnly: false };
  const byFilter = action.kind === 'redrive' && 'filter' in action.target;

  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    cancel.current?.focus();
    // close() returns the focus to the previous element; removing the dialog does not.
    return () => element?.close();
  }, []);

  useEffect(() => {
    if (!counts) return undefined;
    let current = true;
    setCount(null);
    setUncounted(false);
    setError('');
    perform(action, { ...choice, ratePerSecond: undefined }, true).then(
      (counted) => current && setCount(counted),
      (thrown) => {
        if (!current) return;
        // Allow the action without a count: after an outage, there may be too many deliveries to count in time.
        setUncounted(thrown instanceof ApiError && thrown.unavailable);
        setError(reasonOf(thrown));
      },
    );
    return () => {
      current = false;
    };
  }, [force]);

  // Close the dialog, because the page does not show the target of the action any more.
  useEffect(() => {
    const leave = () => {
      if (!busy) onCancel();
    };
    addEventListener('hashchange', leave);
    return () => removeEventListener('hashchange', leave);
  }, [busy]);

  const act = async (newestOnly = false) => {
    setBusy(true);
    setError('');
    try {
      const result = await perform(action, { ...choice, newestOnly }, false);
      onDone({ text: resultOf(action, result, newestOnly), event: result.event });
    } catch (thrown) {
      setError(reasonOf(thrown, true));
      setBusy(false);
    }
  };
  /** @param {Event} event */
  const confirm = (event) => {
    event.preventDefault();
    void act();
  };
  /** @param {Event} event */
  const escape = (event) => {
    event.preventDefault();
    if (!busy) onCancel();
  };

  const nothing = counts && count?.deliveries === 0;
  return html`<dialog
    ref=${dialog}
    onCancel=${escape}
    aria-labelledby="ask-title"
    aria-describedby="ask-text"
  >
    <form onSubmit=${confirm}>
      <h2 id="ask-title">${visible(titleOf(action))}</h2>
      <div id="ask-text">
        ${!('handler' in action) && html`<p class="scope">${visible(scopeOf(action, force))}</p>`}
        <p aria-live="polite">
          ${nothing ? nothingTo(action, force) : consequenceOf(action, count, uncounted)}
        </p>
      </div>
      ${
        action.kind === 'redrive' &&
        html`<label class="check">
          <input
            type="checkbox"
            checked=${force}
            disabled=${busy}
            onChange=${() => setForce(!force)}
          />
          Also run deliveries that are done: their effects may happen twice
        </label>`
      }
      ${
        byFilter &&
        html`<label class="rate">
          Events per second
          <input
            type="number"
            min="0.01"
            max="1000"
            step="any"
            inputmode="decimal"
            placeholder=${DEFAULT_RATE}
            value=${rate}
            disabled=${busy}
            onInput=${(/** @type {any} */ { currentTarget }) => setRate(currentTarget.value)}
          />
          <span class="quiet takes">
            ${
              (count?.events ?? 0) > 0 &&
              (ratePerSecond ?? DEFAULT_RATE) > 0 &&
              `takes ${expectedTime(count?.events ?? 0, ratePerSecond ?? DEFAULT_RATE)}`
            }
          </span>
        </label>`
      }
      ${(fields[action.kind] ?? []).map(
        ({ name, label, ...input }) =>
          html`<label class="text" key=${name}>
            ${label}
            <input
              ...${input}
              autocomplete="off"
              value=${texts[name]}
              disabled=${busy}
              onInput=${(/** @type {any} */ { currentTarget }) =>
                setTexts({ ...texts, [name]: currentTarget.value })}
            />
          </label>`,
      )}
      ${error && html`<p class="trouble" role="alert">${visible(error)}</p>`}
      <div class="buttons">
        <button type="button" ref=${cancel} disabled=${busy} onClick=${onCancel}>Cancel</button>
        ${
          byFilter &&
          html`<button
            type="button"
            disabled=${busy || (!uncounted && !count?.deliveries)}
            title="Redrives the newest event that matches"
            onClick=${() => act(true)}
          >
            Redrive one first
          </button>`
        }
        <button
          type="submit"
          class=${['skip', 'pause', 'forget', 'close'].includes(action.kind) ? 'danger' : 'primary'}
          disabled=${busy || (counts && !uncounted && !count?.deliveries) || (fields[action.kind] ?? []).some(({ name, required }) => required && !choice[name])}
        >
          ${busy ? 'Working …' : verbOf(action, count)}
        </button>
      </div>
    </form>
  </dialog>`;
}

/**
 * @param {import('./actions.js').Action} action
 * @param {boolean} force
 */
function nothingTo(action, force) {
  if (action.kind === 'skip')
    return 'There is nothing to skip: only pending and dead deliveries can be skipped.';
  if (force) return 'There is nothing to run: running deliveries are not changed.';
  return 'There is nothing to redrive: deliveries that are done run again only if you select this below.';
}

/**
 * @param {unknown} thrown
 * @param {boolean} [acted] whether the request was the action itself, not a count
 */
function reasonOf(thrown, acted = false) {
  const status = /** @type {{ status?: number }} */ (thrown).status;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (status === 401) return 'You are not signed in any more. Reload the page and sign in.';
  return acted && status === 0
    ? `${message} It is not known whether the action was performed. Check this before you try again.`
    : message;
}
