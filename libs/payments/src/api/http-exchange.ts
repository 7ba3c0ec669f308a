import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { BoundedBuffer, readInto } from '../runtime/bounded-buffer.js';

export const USER_AGENT = 'nestjs-payments';

export interface HttpRequest {
  method: string;
  /** Absolute URL. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body?: Buffer | undefined;
  signal: AbortSignal;
  /** The largest body of a 2xx response, in bytes after decompression. */
  maxBytes: number;
}

/** Joins base URL and path, without the class `URL`, because this class would normalize the path. */
export function callUrl(baseUrl: string, pathAndQuery: string): string {
  const url = baseUrl.replace(/\/+$/, '') + pathAndQuery;
  // The URL is checked in addition to the path, because the token must be sent only to the company's own host.
  if (new URL(url).origin !== new URL(baseUrl).origin) {
    throw new TypeError("The path must stay on the host of the company's base URL");
  }
  return url;
}

/** A response. The body of a 2xx response is complete. Any other body is cut off after 64 KiB. */
export interface HttpResponse {
  kind: 'response';
  status: number;
  /** Headers by lower-case name. The values of a repeated header are joined with a comma. */
  headers: Record<string, string>;
  body: Buffer;
}

/** A request without a response, or a 2xx response whose body could not be read. */
export interface HttpFailure {
  kind: 'failure';
  reason: 'connection_failed' | 'response_too_large' | 'response_invalid';
  /** Whether it is certain that no byte of the request was sent. */
  unsent: boolean;
  errno: string | undefined;
  /** Status of the response whose body could not be read. */
  status: number | undefined;
}

/**
 * Creates an `HttpFailure` that contains only the code of the error, because the error itself may contain the request
 * with its credentials.
 */
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

/** Returns the code of the root cause of an error, such as `ECONNREFUSED` or `Z_DATA_ERROR`. */
export function errorCode(error: unknown): string | undefined {
  return rootCauses(error)
    .map(({ code }) => code)
    .find((code) => typeof code === 'string');
}

/** Whether the error proves that no connection was opened, because a DNS lookup or `connect` caused the error. */
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

/** Returns the root causes of an error. An AggregateError (one error per address of a host) has several. */
function rootCauses(error: unknown): SystemError[] {
  if (typeof error !== 'object' || error === null) return [];
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap(rootCauses);
  return typeof cause === 'object' && cause !== null ? rootCauses(cause) : [error];
}

export class ResponseBody extends BoundedBuffer {
  /** The error because of which the body could not be read to its end; `undefined` if there was none. */
  error: unknown;
}

const ERROR_BODY_BYTES = 64 * 1024;

/**
 * Returns the maximum size of a response body in bytes: 64 KiB for a status other than 2xx, because only people read
 * the body of an error.
 */
export function bodyLimit({ maxBytes }: HttpRequest, status: number): number {
  return isSuccess(status) ? maxBytes : ERROR_BODY_BYTES;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

/**
 * Reads a response body. If the body has more than `limit` bytes, destroys the stream, which closes the connection.
 * Never rejects.
 */
export async function readBody(stream: Readable, limit: number): Promise<ResponseBody> {
  const body = new ResponseBody(limit);
  try {
    await readInto(body, stream).ended;
    if (!body.whole) stream.destroy();
  } catch (error) {
    body.error = error;
  }
  return body;
}

/**
 * The `Accept-Encoding` of every request. `deflate` responses are decompressed but not requested, because servers
 * disagree about the format (RFC 9110, section 8.4.1.2).
 */
export const ACCEPT_ENCODING = 'gzip, br';

const DECODERS: ReadonlyMap<unknown, () => Transform> = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

export function decoderOf(encoding: string | string[] | undefined): (() => Transform) | undefined {
  return DECODERS.get(typeof encoding === 'string' ? encoding.trim().toLowerCase() : undefined);
}

/**
 * Returns the value of a body: `undefined` if it is empty, the parsed value if it is JSON, otherwise its text.
 *
 * A body is parsed if its content type is JSON, or if it starts like an object or an array. Other text is not parsed,
 * because text that happens to be a number must stay text.
 */
export function parseBody(bytes: Buffer, contentType: string | undefined): unknown {
  if (bytes.length === 0) return undefined;
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (/^[^;]*[/+]json\s*(?:;|$)/i.test(contentType ?? '') || /^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  }
  return text;
}

/** Headers that contain credentials or request them. */
const HIDDEN = new Set(
  `authorization x-auth-token set-cookie set-cookie2 cookie www-authenticate
  proxy-authenticate proxy-authorization authentication-info`.split(/\s+/),
);

export function shownHeaders(
  headers: Readonly<Record<string, string>>,
  token: string,
): Readonly<Record<string, string>> {
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!HIDDEN.has(name) && !value.includes(token)) shown[name] = value;
  }
  return Object.freeze(shown);
}

/** The service documents no header for the id of a request; `X-Request-Id` is the usual one. */
export function requestIdOf(
  headers: Readonly<Record<string, string>>,
  token: string,
): string | undefined {
  const id = headers['x-request-id'];
  return id !== undefined && /^[\x21-\x7e]{1,200}$/.test(id) && !id.includes(token)
    ? id
    : undefined;
}

/**
 * Reads a `Retry-After` header (RFC 9110, section 10.2.3): seconds, or a date.
 *
 * @param now the wall clock, in milliseconds since the epoch
 * @returns milliseconds from now, not negative; `undefined` if the header is missing or invalid
 */
export function parseRetryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim();
  if (!text) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse alone would read '-5' or '1.5' as a year.
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
