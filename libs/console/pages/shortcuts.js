import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** How long after `g` the second key is accepted, in milliseconds. */
const SEQUENCE_MS = 1500;
/** Key of the browser's storage for the setting. */
const STORED = 'payments-console-shortcuts';

/** Keys after `g`, and the pages they open. @type {Record<string, string>} */
const PLACES = {
  o: '#/',
  e: '#/events',
  f: '#/failures',
  x: '#/expectations',
  a: '#/audit',
  s: '#/setup',
};

/** The lines of the help, each with its keys and their effect. @type {readonly [readonly string[], string][]} */
const KEYS = [
  [['/'], 'Search payments'],
  [['j'], 'Next row'],
  [['k'], 'Previous row'],
  [['Enter'], 'Open the row'],
  [['g', 'o'], 'Overview'],
  [['g', 'e'], 'Events'],
  [['g', 'f'], 'Failures'],
  [['g', 'x'], 'Expectations'],
  [['g', 'p'], 'Processes'],
  [['g', 'a'], 'Audit'],
  [['g', 's'], 'Setup'],
  [['Esc'], 'Close a dialog'],
  [['?'], 'This help'],
];

/**
 * Keyboard shortcuts of all pages. The shortcuts do nothing while the operator types in a field or a dialog is open.
 *
 * @param {() => void} onHelp
 */
export function useShortcuts(onHelp) {
  useEffect(() => {
    let began = -Infinity;
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      const { key, target, timeStamp } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.isComposing || isField(target) || !isOn() || dialogIsOpen()) return;
      const place = timeStamp - began < SEQUENCE_MS ? PLACES[key] : undefined;
      began = key === 'g' ? timeStamp : -Infinity;
      if (place !== undefined) location.hash = place;
      else if (key === '?') onHelp();
      else if (key === 'j' || key === 'k') moveRow(key === 'j' ? 1 : -1);
      else if (key === '/') document.getElementById('search')?.focus();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [onHelp]);
}

/**
 * The list of the shortcuts, in a dialog.
 *
 * @param {{ onClose: () => void }} props
 */
export function ShortcutHelp({ onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [on, setOn] = useState(isOn);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // close() returns the focus to the previous element; removing the dialog does not.
    return () => element?.close();
  }, []);
  const toggle = () => {
    setOn(!on);
    store(!on);
  };
  return html`<dialog
    ref=${dialog}
    class="help"
    aria-labelledby="help-title"
    onCancel=${(/** @type {Event} */ event) => {
      event.preventDefault();
      onClose();
    }}
  >
    <h2 id="help-title">Keyboard shortcuts</h2>
    <dl>
      ${KEYS.map(
        ([keys, text]) =>
          html`<div key=${text}>
            <dt>${keys.map((key, at) => html`${at > 0 && ' then '}<kbd>${key}</kbd>`)}</dt>
            <dd>${text}</dd>
          </div>`,
      )}
    </dl>
    <label class="check">
      <input type="checkbox" checked=${on} onChange=${toggle} />
      Use shortcuts in this browser
    </label>
    <div class="buttons">
      <button type="button" class="primary" autofocus onClick=${onClose}>Close</button>
    </div>
  </dialog>`;
}

/**
 * Moves the focus to the link of the next or previous row of the page, or to the row if it has no link.
 *
 * @param {1 | -1} step
 */
function moveRow(step) {
  const found = document.querySelectorAll('main tbody tr, main [data-row]');
  const rows = /** @type {HTMLElement[]} */ ([...found]).filter((row) => row.checkVisibility());
  const current = rows.findIndex((row) => row.contains(document.activeElement));
  const next = current < 0 && step < 0 ? undefined : rows[current + step];
  if (next === undefined) return;
  const link = /** @type {HTMLElement | null} */ (next.querySelector('a[href]'));
  if (link === null) next.tabIndex = -1;
  (link ?? next).focus();
}

/** @param {EventTarget | null} target */
function isField(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches('textarea, select, input:not([type=checkbox], [type=radio], [type=button])'))
  );
}

function dialogIsOpen() {
  return document.querySelector('dialog[open]') !== null;
}

/**
 * Whether the operator uses shortcuts. The operator can switch shortcuts off, because some assistive technologies type
 * text as keys.
 */
function isOn() {
  try {
    return localStorage.getItem(STORED) !== 'off';
  } catch {
    // The browser allows no storage.
    return true;
  }
}

/** @param {boolean} on */
function store(on) {
  try {
    if (on) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, 'off');
  } catch {
    // Without storage, the shortcuts stay on.
  }
}
