import { Readable } from 'node:stream';
import type { AxiosResponse } from 'axios';
import { readCapped, type ReadBody } from './http.body.js';

/** One request, as it goes to the wire. */
export interface HttpRequest {
  method: string;
  url: string;
  /** `false` keeps a header from being sent, whatever axios's global defaults say. */
  headers: Readonly<Record<string, string | false>>;
  body?: Buffer | undefined;
  signal: AbortSignal;
  /** The largest body of a 2xx that is read, in bytes. */
  maxBytes: number;
}

/** An answer. Its body is read whole for a 2xx, up to 64 KiB of it else. */
export interface HttpAnswer {
  kind: 'answer';
  status: number;
  /** Names in lower case; a header that came more than once is joined with a comma. */
  headers: Record<string, string>;
  body: Buffer;
}

/** No answer, or a 2xx whose body could not be read. */
export interface HttpFailure {
  kind: 'failure';
  reason: 'connection_failed' | 'response_too_large' | 'response_invalid';
  /** Whether it is certain that no byte of the request was sent. */
  unsent: boolean;
  /** Node's name for it, like `ECONNREFUSED`, where there is one. */
  errno: string | undefined;
  /** Status of the answer whose body could not be read. */
  status: number | undefined;
}

const ERROR_BODY_BYTES = 64 * 1024;

/** How much of an answer's body is read, in bytes: of an error, what a person may want to see. */
export function bodyLimit(request: HttpRequest, status: number): number {
  return isSuccess(status) ? request.maxBytes : ERROR_BODY_BYTES;
}

/** What came of a request that was answered. Reads the body, where that was not done. Never rejects. */
export async function readAnswer(
  { status, headers, data }: AxiosResponse<Readable | ReadBody>,
  request: HttpRequest,
): Promise<HttpAnswer | HttpFailure> {
  const { bytes, whole, error } =
    data instanceof Readable ? await readStream(data, status, request) : data;
  const success = isSuccess(status);
  if (success && error !== undefined) {
    const reason = isDecompression(error) ? 'response_invalid' : 'connection_failed';
    return failure(reason, error, false, status);
  }
  if (success && !whole) return failure('response_too_large', undefined, false, status);
  // The status of an error is the answer, with its body or without.
  const body = error === undefined ? bytes : Buffer.alloc(0);
  return { kind: 'answer', status, headers: plainHeaders(headers), body };
}

async function readStream(
  stream: Readable,
  status: number,
  request: HttpRequest,
): Promise<ReadBody> {
  // Axios ends its own streams; an HttpService that was replaced may not, and a call must not outlast its deadline.
  const stop = (): void => void stream.destroy();
  request.signal.addEventListener('abort', stop, { once: true });
  const body = await readCapped(stream, bodyLimit(request, status));
  request.signal.removeEventListener('abort', stop);
  return body;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

/** A failure, with of its error nothing but Node's name for it. */
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

function isDecompression(error: unknown): boolean {
  return /^(?:Z_|ERR_ZLIB|ERR__?BROTLI|ERR__ERROR_|ZSTD)/.test(errorCode(error) ?? '');
}

function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

function plainHeaders(headers: AxiosResponse['headers']): Record<string, string> {
  const plain: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') plain[name.toLowerCase()] = value;
    else if (Array.isArray(value)) plain[name.toLowerCase()] = value.join(', ');
  }
  return plain;
}
