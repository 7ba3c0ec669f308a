import { html } from 'htm/preact';
import { Time } from './format.js';

/**
 * Milliseconds without an event after which the page treats the connection as lost. The shop sends a heartbeat every 15
 * seconds.
 */
const SILENCE_MS = 45_000;

/** Delay before the page reopens a rejected stream, in milliseconds. The browser itself reopens an interrupted stream. */
const RETRY_MS = 2000;

/**
 * Follows the events of a page. Each connection starts with the current state, so no change is missed.
 *
 * @template T
 * @param {string} url
 * @param {(state: T) => void} onState
 * @param {(since: Date | null) => void} onConnection called with the time when the connection is lost, and with `null`
 *   when it is restored
 * @returns {() => void} closes the connection
 */
export function followEvents(url, onState, onConnection) {
  /** @type {EventSource} */
  let source;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let isLost = false;

  const open = () => {
    source = new EventSource(url);
    source.addEventListener('heartbeat', markAlive);
    source.addEventListener('state', (event) => {
      markAlive();
      onState(/** @type {T} */ (JSON.parse(event.data)));
    });
    source.addEventListener('error', () => {
      markLost();
      if (source.readyState === EventSource.CLOSED) reopenAfter(RETRY_MS);
    });
    reopenAfter(SILENCE_MS);
  };
  const markAlive = () => {
    if (isLost) onConnection(null);
    isLost = false;
    reopenAfter(SILENCE_MS);
  };
  const markLost = () => {
    if (!isLost) onConnection(new Date());
    isLost = true;
  };
  /** @param {number} delayMs */
  const reopenAfter = (delayMs) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      markLost();
      source.close();
      open();
    }, delayMs);
  };

  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
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
