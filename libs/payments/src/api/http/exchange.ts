import type { AxiosRequestConfig } from 'axios';

/** One HTTP request to the payments service. */
export interface HttpRequest {
  method: string;
  /** Absolute URL. */
  url: string;
  /** `false` prevents a header from being sent, even if axios has a default for it. */
  headers: Readonly<Record<string, string | false>>;
  body?: Buffer | undefined;
  /** Ends the request. */
  signal: AbortSignal;
  /** The largest body of a 2xx answer, in bytes after decompression. */
  maxBytes: number;
}

/** An answer. The body of a 2xx is complete; of any other status, at most 64 KiB are kept. */
export interface HttpAnswer {
  kind: 'answer';
  status: number;
  /** Names in lower case; values of a repeated header are joined with a comma. */
  headers: Record<string, string>;
  body: Buffer;
}

/** A request without an answer, or a 2xx answer whose body could not be read. */
export interface HttpFailure {
  kind: 'failure';
  reason: 'connection_failed' | 'response_too_large' | 'response_invalid';
  /** Whether it is certain that no byte of the request was sent. */
  unsent: boolean;
  /** Node's error code, such as `ECONNREFUSED`, if there is one. */
  errno: string | undefined;
  /** Status of the answer whose body could not be read. */
  status: number | undefined;
}

/** How axios sends one request, and what is known about its progress. */
export interface Exchange {
  readonly config: AxiosRequestConfig;
  /** Whether it is certain that no byte of the request was sent. */
  readonly unsent: boolean;
}

/** A failure. It keeps only the code of the error: an axios error contains the request with its credentials. */
export function failure(
  reason: HttpFailure['reason'],
  error: unknown,
  unsent: boolean,
  status?: number,
): HttpFailure {
  const code = errorCode(error);
  const errno = code !== undefined && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : undefined;
  return { kind: 'failure', reason, unsent, errno, status };
}

/** The code of the error that is the root cause, such as `ECONNREFUSED` or `Z_DATA_ERROR`. */
export function errorCode(error: unknown): string | undefined {
  return rootCauses(error)
    .map(({ code }) => code)
    .find((code) => typeof code === 'string');
}

/** Whether the error itself proves that there was no connection: it comes from DNS or from `connect`. */
export function neverConnected(error: unknown): boolean {
  const causes = rootCauses(error);
  return (
    causes.length > 0 &&
    causes.every(({ syscall }) => syscall === 'connect' || syscall === 'getaddrinfo')
  );
}

interface SystemError {
  code?: string;
  syscall?: string;
}

/** An AggregateError (one error per address of a host) has several root causes. */
function rootCauses(error: unknown): SystemError[] {
  if (typeof error !== 'object' || error === null) return [];
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap(rootCauses);
  return typeof cause === 'object' && cause !== null ? rootCauses(cause) : [error];
}
