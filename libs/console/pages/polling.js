import { html } from 'htm/preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.js';
import { visible } from './format.js';

const EVERY_MS = 2000;
/**
 * Minimum pause after a response, as a multiple of the request's duration, so that a page uses at most a twentieth of
 * the server's time.
 */
const PAUSE_FACTOR = 19;

/**
 * The result of `load`. `load` is called every two seconds while the page is visible, until the server responds that
 * the operator is not signed in or not allowed.
 *
 * @template T
 * @typedef {object} Polled
 * @property {T | undefined} value the last result, which is kept while the server is not reachable
 * @property {ApiError | null} error the error of the last call
 * @property {Date | null} since time of the first call that failed after the last successful call
 * @property {() => void} reload calls `load` now
 */

/**
 * @template T
 * @param {string} key identifies the request: for another key, `value` is undefined until its result arrives
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {number} [acted] number of actions performed: when it changes, `load` is called now
 * @returns {Polled<T>}
 */
export function usePolled(key, load, acted = 0) {
  /** @type {{ key: string, value: T | undefined, error: ApiError | null, since: Date | null }} */
  const nothing = { key, value: undefined, error: null, since: null };
  const [state, setState] = useState(nothing);
  const ask = useRef(() => {});

  useEffect(() => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    let round = new AbortController();
    let unauthorized = false;

    const run = async () => {
      clearTimeout(timer);
      round.abort();
      round = new AbortController();
      const { signal } = round;
      const begun = performance.now();
      try {
        const value = await load(signal);
        if (signal.aborted) return;
        setState({ key, value, error: null, since: null });
      } catch (thrown) {
        if (signal.aborted) return;
        const error = thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown));
        setState((last) => {
          const { value } = last.key === key ? last : nothing;
          return { key, value, error, since: last.since ?? new Date() };
        });
        unauthorized = error.unauthorized;
      }
      const took = performance.now() - begun;
      timer = setTimeout(next, Math.max(EVERY_MS, PAUSE_FACTOR * took));
    };
    const next = () => {
      if (!document.hidden && !unauthorized) void run();
    };

    ask.current = () => void run();
    document.addEventListener('visibilitychange', next);
    void run();
    return () => {
      clearTimeout(timer);
      round.abort();
      document.removeEventListener('visibilitychange', next);
    };
  }, [key]);

  const seen = useRef(acted);
  useEffect(() => {
    if (seen.current !== acted) ask.current();
    seen.current = acted;
  }, [acted]);

  const reload = useCallback(() => ask.current(), []);
  // An unreachable server is an error for all requests, so keep the error for the new key.
  const { error, since } = state.key === key || state.error?.unavailable ? state : nothing;
  return { value: state.key === key ? state.value : undefined, error, since, reload };
}

/**
 * What a page shows until its first result: a note that the page is loading, or the reason why the server rejected the
 * request. The notices at the top of the page show whether the server is not reachable or the operator is not signed
 * in.
 *
 * @param {{ error: ApiError | null }} props
 */
export function Waiting({ error }) {
  if (error === null || error.unavailable || error.unauthorized) {
    return html`<p class="quiet loading">Loading …</p>`;
  }
  const what =
    error.status === 400 ? 'The filter is not valid.' : 'The server rejected the request.';
  return html`<p class="empty"><strong>${what}</strong> ${visible(error.message)}</p>`;
}
