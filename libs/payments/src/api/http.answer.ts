import type { Readable } from 'node:stream';
import type { AxiosResponse } from 'axios';
import { readCapped } from './http.body.js';

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
/** Reads the body of an answer. Never rejects. */
export async function readAnswer(
  { status, headers, data }: AxiosResponse<Readable>,
  request: HttpRequest,
): Promise<HttpAnswer | HttpFailure> {
  const success = status >= 200 && status <= 299;
  const answer = { kind: 'answer' as const, status, headers: plainHeaders(headers) };
  // Axios ends its own streams; an HttpService that was replaced may not, and a call must not outlast its deadline.
  const stop = (): void => void data.destroy();
  request.signal.addEventListener('abort', stop, { once: true });
  try {
    const { bytes, whole } = await readCapped(data, success ? request.maxBytes : ERROR_BODY_BYTES);
    if (success && !whole) return failure('response_too_large', undefined, false, status);
    return { ...answer, body: bytes };
  } catch (error) {
    // The status of an error is the answer, with its body or without.
    if (!success) return { ...answer, body: Buffer.alloc(0) };
    const reason = isDecompression(error) ? 'response_invalid' : 'connection_failed';
    return failure(reason, error, false, status);
  } finally {
    request.signal.removeEventListener('abort', stop);
  }
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
  return /^(?:Z_|ERR_ZLIB|ERR__?BROTLI|ERR_BROTLI|ZSTD)/.test(errorCode(error) ?? '');
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
