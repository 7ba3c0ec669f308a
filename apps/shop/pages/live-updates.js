import { html } from 'htm/preact';
import { Time } from './format.js';

/** Interval between two requests, in milliseconds. */
const POLL_MS = 1000;

/** Milliseconds without a response after which the page treats the shop as unreachable. */
const SILENCE_MS = 15_000;

/**
 * Requests the state of a page at regular intervals.
 *
 * @template T
 * @param {string} url
 * @param {(state: T) => void} onState called with the first state, and with each state that differs from the previous one
 * @param {(since: Date | null) => void} [onConnection] called with the time since which the shop is not reachable, and
 *   with `null` when it is reachable again
 * @returns {() => void} ends the requests
 */
export function follow(url, onState, onConnection = () => {}) {
  const end = new AbortController();
  let shown = '';
  let isLost = false;
  const poll = async () => {
    if (end.signal.aborted) return;
    try {
      const signal = AbortSignal.any([end.signal, AbortSignal.timeout(SILENCE_MS)]);
      const response = await fetch(url, { signal });
      if (!response.ok) throw new Error(`status ${response.status}`);
      const text = await response.text();
      if (isLost) onConnection(null);
      isLost = false;
      if (text !== shown) onState(/** @type {T} */ (JSON.parse(text)));
      shown = text;
    } catch {
      if (!isLost && !end.signal.aborted) onConnection(new Date());
      isLost = true;
    }
    setTimeout(poll, POLL_MS);
  };
  void poll();
  return () => end.abort();
}

/**
 * Shows whether the page is up to date.
 *
 * @param {{ lostSince: Date | null, connecting: boolean }} props
 */
export function ConnectionStatus({ lostSince, connecting }) {
  if (lostSince !== null) {
    return html`<p class="connection lost" role="status">
      The shop has not been reachable since <${Time} at=${lostSince} />. The page keeps trying.
    </p>`;
  }
  const text = connecting ? 'Connecting …' : 'Live: this page updates itself.';
  return html`<p class="connection" role="status">${text}</p>`;
}
