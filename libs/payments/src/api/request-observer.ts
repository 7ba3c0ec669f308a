/** What the API client needs of a logger. Nest's `Logger` has it. */
export interface ApiLogger {
  warn(message: string): void;
}

/** Facts about one attempt of a request. They contain no header, body, token or id of a path. */
export interface RequestFacts {
  /** Id of the company that the request was made for. */
  company: string;
  /** HTTP method, in capitals. */
  method: string;
  /** Path template, like `/v1/transactions/{id}`, or the path if the call gave no template. */
  path: string;
  /** Status of the answer; `undefined` if there was none. */
  status: number | undefined;
  /** Why there was no answer: `timeout`, `aborted`, `connection_failed`; `undefined` if there was one. */
  failure: string | undefined;
  /** Number of the attempt within its call, from 1. */
  attempt: number;
  /** How long the attempt took, in milliseconds. */
  elapsedMs: number;
}

/** Called after every attempt. See {@link PaymentsApiOptions.onRequest}. */
export type RequestObserver = (facts: RequestFacts) => void;

/**
 * Wraps the application's observer, so that what it throws, or rejects with, does not affect the call.
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
      // TypeScript accepts an async function for this type, and nothing else handles its rejection.
      Promise.resolve(observer(Object.freeze(facts))).catch(warnOnce);
    } catch {
      warnOnce();
    }
  };
}
