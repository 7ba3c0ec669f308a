import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { DEFAULT_COMPANY, isCompanyId } from '../companies/company.js';
import { PaymentsError } from '../errors/payments-error.js';
import { BoundedBuffer, readInto } from '../runtime/bounded-buffer.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { webhookBusy } from './pending-requests.js';
import type { PendingRequest } from './pending-requests.js';

/** How many chunks a body may have, in addition to one per {@link BYTES_PER_CHUNK} bytes. */
const FREE_CHUNKS = 4096;
const BYTES_PER_CHUNK = 64;

/** How long a sender may continue to send after its webhook request was rejected, in milliseconds. */
const DISCARD_MS = 5000;

const TYPES_WITH_TEXT: ReadonlySet<string> = new Set(['string', 'number', 'bigint', 'boolean']);

/**
 * The text of a header value of any type: Node.js sets strings and arrays, adapters of serverless platforms also
 * numbers. Joins several values with commas, as Node.js does. Returns `undefined` for an object, a function, `null`
 * and an empty list. Never throws.
 */
export function headerText(value: unknown): string | undefined {
  if (!Array.isArray(value)) return primitiveText(value);
  const texts = value.map(primitiveText).filter((text) => text !== undefined);
  return texts.length === 0 ? undefined : texts.join(', ');
}

function primitiveText(value: unknown): string | undefined {
  return TYPES_WITH_TEXT.has(typeof value) ? String(value) : undefined;
}

/** The path parameter `company` of a route, or `default` if there is none. The value is not checked. */
export function companyParam(params: unknown): unknown {
  return (params as Record<string, unknown> | null | undefined)?.['company'] ?? DEFAULT_COMPANY;
}

/**
 * Returns the value if it has the syntax of a company id.
 *
 * @throws PaymentsError `company_unknown`
 */
export function requireCompanyId(id: unknown): string {
  // If the application's own route has a wildcard with this name, the id is an array and not a string.
  if (!isCompanyId(id)) throw companyUnknown();
  return id;
}

/** The error for a path with an id that no company of this application has. */
export function companyUnknown(): PaymentsError {
  return new PaymentsError(
    'company_unknown',
    'The path names no company that this application receives webhooks for.',
  );
}

/**
 * Reads the body of a request, byte for byte, and counts its bytes as pending.
 *
 * @throws PaymentsError `payload_too_large` or `webhook_busy`, as soon as that is known; the error that the pending
 *   request is rejected with; or the error of the stream, if the sender closes the connection.
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
    else if (buffer.capacity !== pending.bytes && !pending.reserve(buffer.capacity)) {
      stop(webhookBusy());
    }
  });
  pending.onRejection(stop);
  try {
    await ended;
    if (!buffer.whole) throw payloadTooLarge(limitBytes);
    return buffer.bytes;
  } catch (error) {
    buffer.release();
    throw error;
  }
}

/** Properties in which other code may have left the bytes of a body that it has read. */
export interface BodyProperties {
  /** Set by Nest's option `rawBody` and by several serverless platforms. */
  readonly rawBody?: unknown;
  /** The body as bytes or as a string. A parsed body is ignored. */
  readonly body?: unknown;
}

/**
 * The bytes of a body that other code has read; `undefined` if it has left none. A string is encoded as UTF-8: if the
 * sender used another encoding, the signature does not match.
 *
 * @throws PaymentsError `payload_too_large` if there are more than `limitBytes`.
 */
export function bytesReadBefore(
  { rawBody, body }: BodyProperties,
  limitBytes: number,
): Buffer | undefined {
  const bytes = bytesOf(rawBody) ?? bytesOf(body);
  if (bytes !== undefined && bytes.byteLength > limitBytes) throw payloadTooLarge(limitBytes);
  return bytes;
}

function bytesOf(value: unknown): Buffer | undefined {
  if (Buffer.isBuffer(value)) return value;
  if (value instanceof Uint8Array || typeof value === 'string') return Buffer.from(value);
  return undefined;
}

/**
 * Lets code that runs later read a body that this module has read. Without this, middleware that waits for the event
 * `end` would wait until the connection closes: a stream emits its events only once. Each new listener gets the bytes
 * with `data`, or `end` right after. Body parsers do not listen: they see that the stream has ended.
 */
export function emitBodyAgain(stream: Readable, pending: PendingRequest): void {
  // The bytes may come from a property, and a request of a serverless adapter may not be a stream.
  if (!stream.readableEnded) return;
  stream.on('newListener', (event: string | symbol, listener: (chunk?: unknown) => void) => {
    if (event === 'end') setImmediate(() => listener.call(stream));
    // At once, because `pipe()` ends its destination before the next turn if the source has ended.
    else if (event === 'data') emitData(stream, pending, listener);
  });
}

function emitData(
  stream: Readable,
  pending: PendingRequest,
  listener: (chunk: unknown) => void,
): void {
  const { body } = pending;
  if (body === undefined || body.byteLength === 0) return;
  const { readableEncoding } = stream;
  // A copy, because middleware may change the bytes before their signature is checked.
  listener.call(stream, readableEncoding ? body.toString(readableEncoding) : Buffer.from(body));
}

/**
 * Ignores the rest of the body of a rejected request. If the connection were closed at once, the sender could not read
 * the response. Closes the connection if the sender does not stop within 5 s, or if it sends tiny chunks.
 *
 * @param body the request, or the stream that a hook of the application has replaced it with
 */
export function discardBody(
  request: IncomingMessage,
  body: Readable,
  runtime: PaymentsRuntime,
): void {
  // A request of a serverless adapter may have no connection.
  const socket = request.socket as Partial<IncomingMessage['socket']> | null | undefined;
  if (request.destroyed || typeof socket?.destroy !== 'function') return;
  // An error without a listener would end the process.
  body.on('error', () => {});
  const chunks = new ChunkCount();
  // Without a listener, Node.js would also ignore the data, but nothing would count the chunks.
  body.on('data', (chunk: Buffer | string) => {
    if (!chunks.add(chunk.length)) request.destroy();
  });
  request.once(
    'close',
    runtime.schedule(DISCARD_MS, () => request.destroy()),
  );
}

/** Counts the chunks of a body: each costs Node.js as much time as thousands of bytes. */
export class ChunkCount {
  #chunks = 0;
  #bytes = 0;

  /** Adds a chunk with this number of bytes. Returns whether the chunks are not too many for the bytes so far. */
  add(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    return this.#chunks <= FREE_CHUNKS + this.#bytes / BYTES_PER_CHUNK;
  }
}

/** The error for a body that has more than `limitBytes`. */
export function payloadTooLarge(limitBytes: number): PaymentsError {
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
