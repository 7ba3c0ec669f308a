import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  consequenceOf,
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
 * Asks for confirmation of an action, after it has counted what the action would change. If the action fails, it stays open
 * and shows the reason.
 *
 * @param {object} props
 * @param {import('./actions.js').Action} props.action
 * @param {(notice: string) => void} props.onDone
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
  const choice = { force, ratePerSecond };

  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    cancel.current?.focus();
    // close() returns the focus to where it was; removing the element does not.
    return () => element?.close();
  }, []);

  useEffect(() => {
    if (!counts) return undefined;
    let current = true;
    setCount(null);
    setUncounted(false);
    setError('');
    perform(action, { force, ratePerSecond: undefined }, true).then(
      (counted) => current && setCount(counted),
      (thrown) => {
        if (!current) return;
        // After an outage there may be too many to count in time, and then the action is needed most.
        setUncounted(thrown instanceof ApiError && thrown.gone);
        setError(reasonOf(thrown));
      },
    );
    return () => {
      current = false;
    };
  }, [force]);

  // The page no longer shows what the action is about.
  useEffect(() => {
    const leave = () => {
      if (!busy) onCancel();
    };
    addEventListener('hashchange', leave);
    return () => removeEventListener('hashchange', leave);
  }, [busy]);

  /** @param {Event} event */
  const confirm = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    try {
      const result = await perform(action, choice, false);
      onDone(resultOf(action, result));
    } catch (thrown) {
      setError(reasonOf(thrown, true));
      setBusy(false);
    }
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
        ${counts && html`<p class="scope">${visible(scopeOf(action, force))}</p>`}
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
          Run again although done: their effects may happen twice
        </label>`
      }
      ${
        action.kind === 'redrive' &&
        'filter' in action.target &&
        html`<label class="rate">
          Events a second
          <input
            type="number"
            min="0.01"
            max="1000"
            step="any"
            inputmode="decimal"
            placeholder="100"
            value=${rate}
            disabled=${busy}
            onInput=${(/** @type {any} */ { currentTarget }) => setRate(currentTarget.value)}
          />
        </label>`
      }
      ${error && html`<p class="trouble" role="alert">${visible(error)}</p>`}
      <div class="buttons">
        <button type="button" ref=${cancel} disabled=${busy} onClick=${onCancel}>Cancel</button>
        <button
          type="submit"
          class=${['skip', 'pause', 'forget'].includes(action.kind) ? 'danger' : 'primary'}
          disabled=${busy || (counts && !uncounted && !count?.deliveries)}
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
  if (force) return 'There is nothing to run: a running delivery is not changed.';
  return 'There is nothing to redrive: done deliveries run again only if you choose that below.';
}

/**
 * @param {unknown} thrown
 * @param {boolean} [acted] whether it was more than a count
 */
function reasonOf(thrown, acted = false) {
  const status = /** @type {{ status?: number }} */ (thrown).status;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (status === 401) return 'You are not signed in any more. Reload the page and sign in.';
  return acted && status === 0
    ? `${message} It is not known whether the action was done: check first.`
    : message;
}
