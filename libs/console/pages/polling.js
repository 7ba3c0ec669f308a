import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.js';

const EVERY_MS = 2000;
/** A server that takes long is asked less often: it spends at most a fifth of its time on one page. */
const PATIENCE = 4;

/**
 * What `load` answers, asked again every two seconds while the page is seen, until the server refuses.
 *
 * @template T
 * @typedef {object} Polled
 * @property {T | undefined} value the last answer, which stays while the server is gone
 * @property {ApiError | null} error why the last question got none
 * @property {Date | null} since when the trouble began
 * @property {() => void} reload asks at once
 */

/**
 * @template T
 * @param {string} key what is asked for: another key is another question, whose answer is awaited anew
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @returns {Polled<T>}
 */
export function usePolled(key, load) {
  /** @type {{ key: string, value: T | undefined, error: ApiError | null, since: Date | null }} */
  const nothing = { key, value: undefined, error: null, since: null };
  const [state, setState] = useState(nothing);
  const ask = useRef(() => {});

  useEffect(() => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    let round = new AbortController();
    let refused = false;

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
        refused = error.refused;
      }
      const took = performance.now() - begun;
      timer = setTimeout(next, Math.max(EVERY_MS, PATIENCE * took));
    };
    const next = () => {
      if (!document.hidden && !refused) void run();
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

  const reload = useCallback(() => ask.current(), []);
  // A server that is gone is gone for every question.
  const { error, since } = state.key === key || state.error?.gone ? state : nothing;
  return { value: state.key === key ? state.value : undefined, error, since, reload };
}
