import { addAbortSignal, Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { AxiosResponse } from 'axios';
import { AnswerBody, readBody } from './answer-body.js';
import { decoderOf } from './content-encoding.js';
import {
  errorCode,
  failure,
  type HttpAnswer,
  type HttpFailure,
  type HttpRequest,
} from './exchange.js';

const ERROR_BODY_BYTES = 64 * 1024;

/** How many bytes of a body are read: an error's body is only for a person to look at. */
export function bodyLimit({ maxBytes }: HttpRequest, status: number): number {
  return isSuccess(status) ? maxBytes : ERROR_BODY_BYTES;
}

/** Reads the body of an axios response. Never rejects. */
export async function readAnswer(
  { status, headers, data }: AxiosResponse<unknown>,
  request: HttpRequest,
): Promise<HttpAnswer | HttpFailure> {
  const { bytes, whole, error } = await readData(data, bodyLimit(request, status), request.signal);
  const success = isSuccess(status);
  if (success && error !== undefined) {
    const reason = isDecompression(error) ? 'response_invalid' : 'connection_failed';
    return failure(reason, error, false, status);
  }
  if (success && !whole) return failure('response_too_large', undefined, false, status);
  // An error's status is the answer, with or without its body.
  const body = error === undefined ? bytes : Buffer.alloc(0);
  return { kind: 'answer', status, headers: plainHeaders(headers, isWebStream(data)), body };
}

/** What axios gives depends on its adapter: the body, a Node.js stream, a web stream, or a test's own value. */
async function readData(data: unknown, limit: number, signal: AbortSignal): Promise<AnswerBody> {
  if (data instanceof AnswerBody) return data;
  const stream = isWebStream(data) ? Readable.fromWeb(data) : data;
  if (stream instanceof Readable) return readBody(addAbortSignal(signal, stream), limit);
  const body = new AnswerBody(limit);
  if (data instanceof Uint8Array) body.add(data);
  else if (typeof data === 'string') body.add(Buffer.from(data));
  else if (data !== undefined && data !== null) body.add(Buffer.from(JSON.stringify(data)));
  return body;
}

function isWebStream(data: unknown): data is ReadableStream {
  return typeof (data as ReadableStream | null | undefined)?.getReader === 'function';
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

function isDecompression(error: unknown): boolean {
  return /^(?:Z_|ERR_ZLIB|ERR__?BROTLI|ERR__ERROR_|ZSTD)/.test(errorCode(error) ?? '');
}

/** @param fetched whether `fetch` has decompressed the body, which leaves the headers as they were */
function plainHeaders(
  headers: Partial<AxiosResponse['headers']> | undefined,
  fetched: boolean,
): Record<string, string> {
  const plain: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string') plain[name.toLowerCase()] = value;
    else if (Array.isArray(value)) plain[name.toLowerCase()] = value.join(', ');
  }
  if (fetched && decoderOf(plain['content-encoding'])) delete plain['content-encoding'];
  return plain;
}
