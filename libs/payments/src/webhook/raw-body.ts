import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { PaymentsError } from '../errors/payments-error.js';
import { BoundedBuffer, readInto } from '../runtime/bounded-buffer.js';
import { headerText } from './request-headers.js';
import type { PendingRequest } from './pending-requests.js';
import { webhookBusy } from './pending-requests.js';

/** How many chunks a body may have, in addition to one per {@link BYTES_PER_CHUNK} bytes. */
const FREE_CHUNKS = 4096;
const BYTES_PER_CHUNK = 64;

/**
 * Rejects another content type than JSON, and an encoded body: the signature is over the bytes as sent, so nothing
 * here decodes them.
 *
 * @throws PaymentsError `content_type_unsupported` or `content_encoding_unsupported`.
 */
export function requirePlainJson(headers: IncomingHttpHeaders): void {
  const type = headers['content-type'];
  if (type !== 'application/json' && !isJson(type)) {
    throw new PaymentsError(
      'content_type_unsupported',
      'A delivery has Content-Type application/json.',
    );
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && !isIdentity(encoding)) {
    throw new PaymentsError(
      'content_encoding_unsupported',
      'A delivery has no Content-Encoding: its signature is over the bytes as sent.',
    );
  }
}

/** @throws PaymentsError `payload_too_large` if `Content-Length` is over the limit. */
export function requireFittingLength(headers: IncomingHttpHeaders, limitBytes: number): void {
  if (Number(headerText(headers['content-length']) ?? 0) > limitBytes) throw tooLarge(limitBytes);
}

/**
 * Reads a request's body, byte for byte, and counts its bytes as pending.
 *
 * @throws PaymentsError `payload_too_large` or `webhook_busy`, as soon as that is known; what the request is refused
 *   with; or the error of the stream, if the sender closes the connection.
 */
export async function readRawBody(
  stream: Readable,
  limitBytes: number,
  pending: PendingRequest,
): Promise<Buffer> {
  const buffer = new BoundedBuffer(limitBytes);
  const chunks = new ChunkCount();
  const { ended, stop } = readInto(buffer, stream, (chunk) => {
    if (!chunks.add(chunk.length)) stop(tooManyChunks());
    else if (buffer.capacity !== pending.bytes && !pending.hold(buffer.capacity)) {
      stop(webhookBusy());
    }
  });
  pending.onRefusal(stop);
  try {
    await ended;
    if (!buffer.whole) throw tooLarge(limitBytes);
    return buffer.bytes;
  } catch (error) {
    buffer.release();
    throw error;
  }
}

/**
 * The bytes that something else has left on a request: as `rawBody`, like Nest's option of that name and several
 * serverless platforms, or as an unparsed `body`. Of a text, its UTF-8: if that is not what was sent, the signature
 * does not match.
 *
 * @throws PaymentsError `payload_too_large` if there are more than `limitBytes`.
 */
export function givenBytes(
  { rawBody, body }: { rawBody?: unknown; body?: unknown },
  limitBytes: number,
): Buffer | undefined {
  const bytes = bytesOf(rawBody) ?? bytesOf(body);
  if (bytes !== undefined && bytes.byteLength > limitBytes) throw tooLarge(limitBytes);
  return bytes;
}

/** Counts the chunks of a body: each costs Node.js as much time as thousands of bytes. */
export class ChunkCount {
  #chunks = 0;
  #bytes = 0;

  /** Adds a chunk of so many bytes. Returns whether the number of chunks is still reasonable. */
  add(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    return this.#chunks <= FREE_CHUNKS + this.#bytes / BYTES_PER_CHUNK;
  }
}

function isJson(contentType: unknown): boolean {
  // Node keeps the first of several values; an adapter may have kept them all.
  const [first] = [contentType].flat();
  const [type = ''] = (headerText(first) ?? '').split(';');
  return type.trim().toLowerCase() === 'application/json';
}

function isIdentity(contentEncoding: unknown): boolean {
  const encodings = (headerText(contentEncoding) ?? '').split(',');
  return encodings.every((encoding) => /^(identity)?$/i.test(encoding.trim()));
}

function bytesOf(given: unknown): Buffer | undefined {
  if (Buffer.isBuffer(given)) return given;
  if (given instanceof Uint8Array || typeof given === 'string') return Buffer.from(given);
  return undefined;
}

function tooLarge(limitBytes: number): PaymentsError {
  return new PaymentsError(
    'payload_too_large',
    `The body is larger than ${limitBytes} bytes. If the service really sends more, raise "webhook.bodyLimitBytes".`,
  );
}

function tooManyChunks(): PaymentsError {
  return new PaymentsError(
    'payload_too_large',
    `The body has more than ${FREE_CHUNKS} chunks and most of them are smaller than ${BYTES_PER_CHUNK} bytes. Send ` +
      'larger chunks.',
  );
}
