import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import { number, visible } from './format.js';

/** Maximum number of characters that are shown at first, because longer texts can block the page. */
const SHOWN_CHARACTERS = 20_000;
/** Maximum number of indented levels, because deeper levels are not readable and make each line longer. */
const MAX_INDENTATION = 40;

/**
 * Indents JSON and keeps its values as text: numbers keep all digits, strings keep their escapes, and duplicate keys remain.
 *
 * @param {string} text
 * @returns {string | null} `null` if the text is not JSON
 */
function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let depth = 0;
  const line = () => `\n${'  '.repeat(Math.min(depth, MAX_INDENTATION))}`;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g) ?? [];
  return tokens
    .map((token, index) => {
      const next = tokens[index + 1];
      if (token === '{' || token === '[') {
        if (next === '}' || next === ']') return token;
        depth += 1;
        return token + line();
      }
      if (token === '}' || token === ']') {
        const before = tokens[index - 1];
        if (before === '{' || before === '[') return token;
        depth -= 1;
        return line() + token;
      }
      if (token === ',') return token + line();
      return token === ':' ? ': ' : token;
    })
    .join('');
}

/**
 * The body of an event, indented or as received, and always as text.
 *
 * @param {{ payload: string | null, error?: string }} props
 */
export function Payload({ payload, error }) {
  const [form, setForm] = useState('indented');
  const [whole, setWhole] = useState(false);
  const pretty = useMemo(() => (payload === null ? null : indented(payload)), [payload]);
  if (error !== undefined) {
    return html`<p>The body is stored, but cannot be decoded. <bdi>${visible(error)}</bdi></p>`;
  }
  if (payload === null) {
    return html`<p class="quiet">
      The body was deleted when its retention time ended (<code>worker.retainEventsMs</code>). The
      id of the event is still stored, so that a duplicate does not run.
    </p>`;
  }
  const shown = (form === 'indented' ? pretty : null) ?? payload;
  const cut = !whole && shown.length > SHOWN_CHARACTERS;
  return html`
    <div class="tools">
      <div class="choices" role="group" aria-label="Form of the payload">
        ${['indented', 'as received'].map(
          (one) =>
            html`<button type="button" aria-pressed=${form === one} onClick=${() => setForm(one)}>
              ${one}
            </button>`,
        )}
      </div>
      <${Copy} text=${payload} what="payload" />
    </div>
    <pre class="payload" tabindex="0" aria-label="Payload">
${visible(cut ? shown.slice(0, SHOWN_CHARACTERS) : shown)}</pre>
    ${
      cut &&
      html`<p>
        The first ${number(SHOWN_CHARACTERS)} of ${number(shown.length)} characters.${' '}
        <button type="button" onClick=${() => setWhole(true)}>Show all</button>
      </p>`
    }
  `;
}

/**
 * A button that copies the text exactly as it was received.
 *
 * @param {object} props
 * @param {string} props.text
 * @param {string} props.what
 * @param {boolean} [props.small] whether the button shows a sign instead of a word
 * @param {boolean} [props.inRow] whether the button is not in the tab order. A list has up to 100 such buttons, and the
 *   page of the event has the same button.
 */
export function Copy({ text, what, small = false, inRow = false }) {
  const [notice, setNotice] = useState('');
  const copy = async () => {
    try {
      // Browsers allow this only over HTTPS or on localhost.
      await navigator.clipboard.writeText(text);
      setNotice('copied');
    } catch {
      setNotice(copyWithTextArea(text) ? 'copied' : 'the browser does not allow copying');
    }
  };
  const title = small ? `Copy ${what}` : undefined;
  return html`<span class=${small ? 'copy small' : 'copy'}>
    <button
      type="button"
      aria-label=${`Copy ${what}`}
      title=${title}
      tabindex=${inRow ? -1 : undefined}
      onClick=${copy}
    >
      ${!small && 'Copy'}
    </button>
    <span role="status">${notice}</span>
  </span>`;
}

/** @param {string} text */
function copyWithTextArea(text) {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
