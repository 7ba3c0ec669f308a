import { html } from 'htm/preact';
import { Time } from './format.js';

/** The shop sends a heartbeat every 15 seconds. Three that are missing: the line is dead, whatever the browser thinks. */
const SILENCE_MS = 45_000;

/** How soon a stream that was refused is asked for again. One that broke off, the browser itself asks for again. */
const AGAIN_MS = 2000;

/**
 * Follows the events of a page: the present state comes first, at each new connection too, so nothing is missed.
 *
 * @template T
 * @param {string} url
 * @param {(state: T) => void} onState
 * @param {(since: Date | null) => void} onLost told since when the shop is out of reach, and `null` once it is not
 * @returns {() => void} ends it
 */
export function follow(url, onState, onLost) {
  /** @type {EventSource} */
  let source;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let lost = false;

  const open = () => {
    source = new EventSource(url);
    source.addEventListener('heartbeat', alive);
    source.addEventListener('state', (event) => {
      alive();
      onState(/** @type {T} */ (JSON.parse(event.data)));
    });
    source.addEventListener('error', () => {
      tellLost();
      if (source.readyState === EventSource.CLOSED) reopen(AGAIN_MS);
    });
    reopen(SILENCE_MS);
  };
  const alive = () => {
    if (lost) onLost(null);
    lost = false;
    reopen(SILENCE_MS);
  };
  /** @param {number} inMs */
  const reopen = (inMs) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      tellLost();
      source.close();
      open();
    }, inMs);
  };
  const tellLost = () => {
    if (!lost) onLost(new Date());
    lost = true;
  };

  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

/**
 * Says whether the page is up to date.
 *
 * @param {{ since: Date | null, waiting: boolean }} props
 */
export function Link({ since, waiting }) {
  if (since !== null) {
    return html`<p class="link lost" role="status">
      The shop is not reachable since <${Time} at=${since} short />. Trying again …
    </p>`;
  }
  const text = waiting ? 'Connecting …' : 'Live: this page changes by itself.';
  return html`<p class="link" role="status">${text}</p>`;
}
