import { useEffect, useRef, useState } from 'preact/hooks';

/** An error about a request that the emulator rejected. The message contains the reason. */
export class RequestRejected extends Error {}

/**
 * Calls a control of the emulator and returns its JSON.
 *
 * @param {'GET' | 'POST' | 'PUT' | 'DELETE'} method
 * @param {string} path under `/emulator/`
 * @param {unknown} [body] sent as JSON
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 * @throws {RequestRejected} with the emulator's message; every other error means that the emulator is not reachable
 */
export async function call(method, path, body, signal) {
  const sent = body !== undefined;
  const response = await fetch(`/emulator/${path}`, {
    method,
    ...(sent
      ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      : {}),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  if (response.ok) return text === '' ? undefined : JSON.parse(text);
  throw new RequestRejected(messageIn(text) ?? `The emulator responded with ${response.status}.`);
}

/**
 * Appends a query to a path. Empty values are omitted.
 *
 * @param {string} path
 * @param {Record<string, string | number | boolean | undefined>} query
 */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/**
 * The current error of a polled path. `rejected` is true if the emulator responded with an error, and false if the
 * emulator is not reachable.
 * @typedef {{ since: Date, message: string, rejected: boolean }} PollingError
 */

const INTERVAL_MS = 1000;
/** Interval between the requests of a hidden page. */
const HIDDEN_INTERVAL_MS = 15_000;
const TIMEOUT_MS = 10_000;

/**
 * Requests the JSON of a path at regular intervals. `refresh()` requests the JSON at once, and resolves when the
 * emulator has responded. If the emulator is not reachable, the page keeps the last data.
 *
 * @param {string} path under `/emulator/`
 * @returns {{ data: any, error: PollingError | undefined, refresh: () => Promise<void> }}
 */
export function usePolling(path) {
  const [text, setText] = useState(/** @type {string | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {PollingError | undefined} */ (undefined));
  const poll = useRef(async () => {});
  useEffect(() => {
    let latest = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const request = async () => {
      const own = ++latest;
      clearTimeout(timer);
      try {
        const data = await call('GET', path, undefined, AbortSignal.timeout(TIMEOUT_MS));
        if (own !== latest) return;
        setText(JSON.stringify(data));
        setError(undefined);
      } catch (cause) {
        if (own !== latest) return;
        const rejected = cause instanceof RequestRejected;
        const message = rejected ? cause.message : '';
        setError((before) =>
          before && before.message === message ? before : { since: new Date(), message, rejected },
        );
      }
      const interval = document.hidden ? HIDDEN_INTERVAL_MS : INTERVAL_MS;
      timer = setTimeout(() => void poll.current(), interval);
    };
    poll.current = request;
    void poll.current();
    const onVisibilityChange = () => void poll.current();
    document.addEventListener('visibilitychange', onVisibilityChange);
    return () => {
      latest = -1;
      poll.current = async () => {};
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibilityChange);
    };
  }, [path]);
  // Keeps the same object for the same text, so that an unchanged list is not rendered again.
  const kept = useRef({ text, data: undefined });
  if (kept.current.text !== text) {
    kept.current = { text, data: text === undefined ? undefined : JSON.parse(text) };
  }
  return { data: kept.current.data, error, refresh: () => poll.current() };
}

/**
 * The action of a button, with its state: `busy` while it runs, and `problem` after an error.
 *
 * @returns {{ busy: boolean, problem: string | undefined, run: (work: () => Promise<unknown>) => Promise<boolean> }}
 */
export function useAction() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {string | undefined} */ (undefined));
  return {
    busy,
    problem,
    async run(work) {
      setBusy(true);
      try {
        await work();
        setProblem(undefined);
        return true;
      } catch (error) {
        setProblem(
          error instanceof RequestRejected || error instanceof SyntaxError
            ? error.message
            : 'The emulator is not reachable; the outcome is unknown.',
        );
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}

/** @param {string} text */
function messageIn(text) {
  try {
    const { message } = JSON.parse(text);
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}
