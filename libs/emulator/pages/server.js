import { useEffect, useRef, useState } from 'preact/hooks';

/** The emulator answered, and would not: its message says why. */
export class Refused extends Error {}

/**
 * Calls a control of the emulator and answers its JSON.
 *
 * @param {'GET' | 'POST' | 'PUT' | 'DELETE'} method
 * @param {string} path under `/emulator/`
 * @param {unknown} [body] sent as JSON
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 * @throws {Refused} with the emulator's own words; any other error means that it is not reachable
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
  throw new Refused(messageIn(text) ?? `The emulator answered ${response.status}.`);
}

/**
 * A path with a query of what is given; what is empty is left out.
 *
 * @param {string} path
 * @param {Record<string, string | number | boolean | undefined>} query
 */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/**
 * What goes wrong when something is asked for again and again.
 * @typedef {{ since: Date, message: string, refused: boolean }} Trouble
 */

const PAUSE_MS = 1000;
const HIDDEN_PAUSE_MS = 15_000;
const PATIENCE_MS = 10_000;

/**
 * Asks for a path's JSON now and then, and at once by `refresh()`. What was there stays while the
 * emulator can't be reached, so that nothing a developer reads is lost with it.
 *
 * @param {string} path under `/emulator/`
 * @returns {{ data: any, trouble: Trouble | undefined, refresh: () => void }}
 */
export function useLive(path) {
  const [text, setText] = useState(/** @type {string | undefined} */ (undefined));
  const [trouble, setTrouble] = useState(/** @type {Trouble | undefined} */ (undefined));
  const look = useRef(() => {});
  useEffect(() => {
    let round = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const ask = async () => {
      const mine = ++round;
      clearTimeout(timer);
      try {
        const data = await call('GET', path, undefined, AbortSignal.timeout(PATIENCE_MS));
        if (mine !== round) return;
        setText(JSON.stringify(data));
        setTrouble(undefined);
      } catch (error) {
        if (mine !== round) return;
        const refused = error instanceof Refused;
        const message = refused ? error.message : '';
        setTrouble((before) =>
          before && before.message === message ? before : { since: new Date(), message, refused },
        );
      }
      timer = setTimeout(() => look.current(), document.hidden ? HIDDEN_PAUSE_MS : PAUSE_MS);
    };
    look.current = () => void ask();
    look.current();
    const wake = () => look.current();
    document.addEventListener('visibilitychange', wake);
    return () => {
      round = -1;
      look.current = () => {};
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', wake);
    };
  }, [path]);
  // The same text is the same data: a list that did not change is not drawn anew.
  const kept = useRef({ text, data: undefined });
  if (kept.current.text !== text) {
    kept.current = { text, data: text === undefined ? undefined : JSON.parse(text) };
  }
  return { data: kept.current.data, trouble, refresh: () => look.current() };
}

/**
 * Something a button does: while it is under way the button waits, and what went wrong is told.
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
          error instanceof Refused || error instanceof SyntaxError
            ? error.message
            : 'The emulator is not reachable; nothing is known of the outcome.',
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
