import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import { number, visible } from './format.js';

/** Longer texts are shown on demand: their layout would make the page hang. */
const SHOWN = 20_000;
/** Maximum indentation: deeper levels are not readable, and each line would contain it. */
const DEEPEST = 40;

/**
 * Indents JSON without parsing its values: numbers keep every digit, strings keep their escapes, and duplicate keys stay.
 *
 * @param {string} text
 * @returns {string | null} `null` if it is not JSON
 */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let depth = 0;
  const line = () => `\n${'  '.repeat(Math.min(depth, DEEPEST))}`;
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
 * The body of an event: indented or as received, always as text.
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
      The body was deleted after the retention of the application (<code>worker.keepMs</code>). Its
      id is still stored, so a copy would not run again.
    </p>`;
  }
  const shown = (form === 'indented' ? pretty : null) ?? payload;
  const cut = !whole && shown.length > SHOWN;
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
${visible(cut ? shown.slice(0, SHOWN) : shown)}</pre>
    ${
      cut &&
      html`<p>
        The first ${number(SHOWN)} of ${number(shown.length)} characters.${' '}
        <button type="button" onClick=${() => setWhole(true)}>Show all</button>
      </p>`
    }
  `;
}

/**
 * Copies the text exactly as received, not as shown.
 *
 * @param {{ text: string, what: string }} props
 */
export function Copy({ text, what }) {
  const [notice, setNotice] = useState('');
  const copy = async () => {
    try {
      // Browsers allow this only over https, or on this machine.
      await navigator.clipboard.writeText(text);
      setNotice('copied');
    } catch {
      setNotice(copiedByHand(text) ? 'copied' : 'the browser does not let a page copy');
    }
  };
  return html`<span class="copy">
    <button type="button" aria-label=${`Copy ${what}`} onClick=${copy}>Copy</button>
    <span role="status">${notice}</span>
  </span>`;
}

/** @param {string} text */
function copiedByHand(text) {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
