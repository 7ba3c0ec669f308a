import type { ApiLogger } from './api.logger.js';

/** What is told of one try of one request: never a header, a body, a token or an id in a path. */
export interface RequestFacts {
  /** Id of the company the request was made for. */
  company: string;
  /** HTTP method, in capitals. */
  method: string;
  /** Path template, like `/v1/transactions/{id}`, or the path itself where a call gave no template. */
  path: string;
  /** Status of the answer, or undefined where none came. */
  status: number | undefined;
  /** Why no answer came, or undefined where one did: `timeout`, `aborted`, `connection_failed`. */
  failure: string | undefined;
  /** Which try of the call this was, from 1. */
  attempt: number;
  /** How long the try took, in milliseconds. */
  elapsedMs: number;
}

/** Called after every try. See {@link PaymentsApiOptions.onRequest}. */
export type RequestObserver = (facts: RequestFacts) => void;

/**
 * Wraps the application's observer so that nothing it throws, at once or later, can touch a call that moves
 * money.
 */
export function guardedObserver(
  observer: RequestObserver | undefined,
  logger: ApiLogger,
): RequestObserver {
  if (!observer) return () => {};
  let warned = false;
  const warnOnce = (): void => {
    if (warned) return;
    warned = true;
    logger.warn('The onRequest observer failed; its errors are ignored from now on');
  };
  return (facts) => {
    try {
      // The type says void, but an async function fits it, and its rejection would be nobody's.
      Promise.resolve(observer(Object.freeze(facts))).catch(warnOnce);
    } catch {
      warnOnce();
    }
  };
}
