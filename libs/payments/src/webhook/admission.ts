import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { DEFAULT_COMPANY, isCompanyId } from '../companies/company.js';
import { isWhole } from '../errors/option-checks.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { BoundedBuffer, readInto } from '../runtime/bounded-buffer.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { parseSignatures, SIGNATURE_HEADER } from './signature.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type {
  AdmissionCheck,
  AdmissionRequest,
  ResolvedWebhookOptions,
} from './webhook-options.js';
import { AdmissionCheckError, RequestClosedError } from './webhook-rejection.js';

/** Minimum age of a pending request before it can be rejected to make room for a newer request, in milliseconds. */
const GRACE_MS = 25;

/**
 * A webhook request that was admitted and whose signature is not verified yet. `util.inspect` does not show its body
 * and signatures.
 */
export class PendingRequest {
  /** Number of bytes that are buffered for the body of this request. */
  bytes = 0;
  readonly #owner: PendingRequests;
  readonly #signatures: readonly Buffer[];
  readonly #rejectionCallbacks: ((error: unknown) => void)[] = [];
  #body: Buffer | undefined;
  #released = false;
  #rejection: { readonly error: unknown } | null = null;

  constructor(
    owner: PendingRequests,
    signatures: readonly Buffer[],
    /** The time when the request was admitted, on the runtime's monotonic clock, in milliseconds. */
    readonly since: number,
  ) {
    this.#owner = owner;
    this.#signatures = signatures;
  }

  /** The well-formed values of the signature header, at least one. */
  get signatures(): readonly Buffer[] {
    return this.#signatures;
  }

  /**
   * The body as it was received; `undefined` if other code has read it and left no bytes.
   *
   * @throws the error that the request was rejected with.
   */
  get body(): Buffer | undefined {
    if (this.#rejection) throw this.#rejection.error;
    return this.#body;
  }

  set body(body: Buffer | undefined) {
    if (!this.#rejection) this.#body = body;
  }

  /**
   * Sets how many bytes are buffered for this request. Returns whether the limit for the bytes of all pending requests
   * allows it.
   */
  reserve(bytes: number): boolean {
    return this.#owner.reserve(this, bytes);
  }

  /** Removes this request from the pending requests. Idempotent. */
  release(): void {
    this.#owner.release(this);
    this.#released = true;
    // The callbacks reference the body, and the application may keep the request for a long time.
    this.#rejectionCallbacks.length = 0;
  }

  /**
   * Releases this request, drops its body and calls the callbacks of {@link onRejection}. Does nothing if the request
   * is already released.
   */
  reject(error: unknown): void {
    if (this.#released) return;
    const callbacks = [...this.#rejectionCallbacks];
    this.release();
    // The bytes of the body do not count as pending any more, so they must not stay in memory.
    this.#body = undefined;
    this.#rejection = { error };
    for (const callback of callbacks) callback(error);
  }

  /** Registers a callback that {@link reject} calls. The callback is never called after the release of the request. */
  onRejection(callback: (error: unknown) => void): void {
    if (!this.#released) this.#rejectionCallbacks.push(callback);
  }

  /** Waits for a promise, but rejects at once if the request is rejected. */
  async until<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.onRejection(reject);
      promise.then(resolve, reject);
    });
  }
}

/**
 * The webhook requests between their admission and the check of their signature: at most `webhook.maxPending` requests,
 * with at most `webhook.maxPendingBytes` buffered bytes.
 *
 * If there are too many requests, the oldest is rejected, unless it is younger than 25 ms. The check of a valid webhook
 * request takes a few milliseconds, so slow senders cannot cause the rejection of a valid request.
 */
@Injectable()
export class PendingRequests {
  /** The pending requests, the oldest first. */
  readonly #requests = new Set<PendingRequest>();
  /**
   * Key of the property with which the middleware passes the pending request to the guard, on the request object of
   * Express or Node.js. A WeakMap would add an entry per request, and each entry costs time in every garbage
   * collection.
   */
  readonly #key = Symbol('nestjs-payments: pending request');
  #bytes = 0;

  constructor(
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  get count(): number {
    return this.#requests.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws PaymentsError `webhook_busy` */
  add(signatures: readonly Buffer[] = []): PendingRequest {
    const since = this.runtime.monotonic();
    if (this.#requests.size >= this.options.maxPending && !this.#rejectOldest(since)) {
      throw webhookBusy();
    }
    const request = new PendingRequest(this, signatures, since);
    this.#requests.add(request);
    return request;
  }

  attach(request: object, pending: PendingRequest): void {
    (request as Record<symbol, PendingRequest>)[this.#key] = pending;
  }

  /**
   * Returns the pending request that belongs to a request object; `undefined` if the middleware did not run for the
   * request.
   */
  attachedTo(request: unknown): PendingRequest | undefined {
    return (request as Record<symbol, PendingRequest | undefined> | null | undefined)?.[this.#key];
  }

  reserve(request: PendingRequest, bytes: number): boolean {
    if (!this.#requests.has(request)) return false;
    this.#bytes += bytes - request.bytes;
    request.bytes = bytes;
    while (this.#bytes > this.options.maxPendingBytes) {
      if (!this.#rejectOldest(this.runtime.monotonic())) return false;
    }
    return this.#requests.has(request);
  }

  release(request: PendingRequest): void {
    if (this.#requests.delete(request)) this.#bytes -= request.bytes;
  }

  #rejectOldest(now: number): boolean {
    const [oldest] = this.#requests;
    if (oldest === undefined || now - oldest.since < GRACE_MS) return false;
    oldest.reject(webhookBusy());
    return true;
  }
}

function webhookBusy(): PaymentsError {
  return new PaymentsError(
    'webhook_busy',
    'Too many webhook requests whose signature is not verified yet arrive at the same time. If they are genuine, raise ' +
      '"webhook.maxPending" or "webhook.maxPendingBytes".',
  );
}

/**
 * The error for a request whose response has closed. All requests share this object: every response closes, and a new
 * error for each would capture a stack.
 */
const CLOSED = new RequestClosedError();

/** A webhook request whose body is not read yet, with the properties that Express and Fastify have in common. */
interface UnreadRequest {
  readonly raw: IncomingMessage;
  /** Company in the path. A value that is not a company id is rejected. */
  readonly company: unknown;
  readonly body: Readable;
  /** These properties replace `body` if other code has already read the stream. */
  readonly readBefore: BodyProperties;
  /** The request of Express or Fastify. */
  readonly request: object;
  /** Emits `close` when the request has ended, for any reason. */
  readonly response: { on(event: 'close', listener: () => void): unknown };
}

/**
 * The checks of a webhook request before its signature is verified:
 *
 * 1. form of the request: content type, content encoding, signature header, `Content-Length`
 * 2. syntax of the company in the path
 * 3. the application's own check, `webhook.before`
 * 4. capacity: `webhook.maxPending`, `webhook.maxPendingBytes`
 * 5. the body, within `webhook.bodyTimeoutMs` and `webhook.bodyLimitBytes`
 *
 * The first check that fails rejects the request. The body is read in step 5 only, with one exception: if
 * `webhook.before` is asynchronous, the body is read while the check runs, within the limits of steps 4 and 5.
 */
@Injectable()
export class Admission {
  constructor(
    private readonly pending: PendingRequests,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  /**
   * Runs the checks and reads the body of the request, then resolves with the pending request. The request stays
   * pending until the caller releases it or the response closes.
   *
   * @throws PaymentsError with the code of the rejection. If the connection closes, the error of the connection.
   */
  async admit(unread: UnreadRequest): Promise<PendingRequest> {
    const { raw, request } = unread;
    const { headers, url = '' } = raw;
    const { before, bodyLimitBytes, bodyTimeoutMs } = this.options;
    requirePlainJson(headers);
    const signatures = parseSignatures(headerText(headers[SIGNATURE_HEADER]));
    requireFittingLength(headers, bodyLimitBytes);
    const company = requireCompanyId(unread.company);
    // Requests of some serverless adapters have no connection.
    const socket = raw.socket as IncomingMessage['socket'] | null | undefined;
    const check =
      before &&
      runCheck(before, { company, url, headers, address: socket?.remoteAddress, request });
    // The request may be rejected before the check ends. Without this listener, a later rejection of the check's
    // promise would be unhandled.
    check?.catch(() => {});
    let checking = check !== undefined;
    const pending = this.pending.add(signatures);
    const cancel = this.runtime.schedule(bodyTimeoutMs, () =>
      pending.reject(
        checking
          ? checkFailed(`did not return within ${bodyTimeoutMs} ms`)
          : new PaymentsError(
              'body_timeout',
              `The body did not arrive within ${bodyTimeoutMs} ms.`,
            ),
      ),
    );
    // Other code may respond to the request, or the sender may close the connection.
    unread.response.on('close', () => pending.reject(CLOSED));
    try {
      const reading = this.#read(unread, pending);
      // The body is read while the check runs. Otherwise Node.js would buffer it as a list of chunks, without our limits.
      if (check) {
        const checked = pending.until(check).then(() => void (checking = false));
        await Promise.all([checked, reading]);
      }
      pending.body = await reading;
      return pending;
    } catch (error) {
      pending.reject(error);
      throw error;
    } finally {
      cancel();
    }
  }

  async #read(
    { body, readBefore }: UnreadRequest,
    pending: PendingRequest,
  ): Promise<Buffer | undefined> {
    const { bodyLimitBytes } = this.options;
    // A request of a serverless adapter may not be a stream.
    if (!body.readableDidRead && typeof body.on === 'function') {
      return readRawBody(body, bodyLimitBytes, pending);
    }
    const bytes = bytesReadBefore(readBefore, bodyLimitBytes);
    if (bytes !== undefined && !pending.reserve(bytes.byteLength)) throw webhookBusy();
    return bytes;
  }
}

/**
 * Rejects a request whose content type is not JSON, and a request with an encoded (for example compressed) body,
 * because the signature is over the bytes as sent.
 */
export function requirePlainJson(headers: IncomingHttpHeaders): void {
  const type = headers['content-type'];
  if (type !== 'application/json' && !isJson(type)) {
    throw new PaymentsError(
      'content_type_unsupported',
      'A webhook request must have the header Content-Type: application/json.',
    );
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && !isIdentity(encoding)) {
    throw new PaymentsError(
      'content_encoding_unsupported',
      'A webhook request must not have a Content-Encoding, because its signature is over the bytes as sent.',
    );
  }
}

function isJson(contentType: unknown): boolean {
  // If a request has several Content-Type headers, Node.js keeps the first; a serverless adapter may keep all of them.
  const [first] = [contentType].flat();
  const [type = ''] = (headerText(first) ?? '').split(';');
  return type.trim().toLowerCase() === 'application/json';
}

function isIdentity(contentEncoding: unknown): boolean {
  const encodings = (headerText(contentEncoding) ?? '').split(',');
  return encodings.every((encoding) => /^(identity)?$/i.test(encoding.trim()));
}

/** @throws PaymentsError `payload_too_large` if `Content-Length` is over the limit. */
export function requireFittingLength(headers: IncomingHttpHeaders, limitBytes: number): void {
  const length = Number(headerText(headers['content-length']) ?? 0);
  if (length > limitBytes) throw payloadTooLarge(limitBytes);
}

/** @throws AdmissionCheckError, directly or from the returned promise, if the check rejects the request or fails. */
export function runCheck(
  check: AdmissionCheck,
  request: AdmissionRequest,
): Promise<void> | undefined {
  try {
    const result: unknown = check(request);
    if (!isPromise(result)) {
      requireAdmitted(result);
      return undefined;
    }
    return Promise.resolve(result).then(requireAdmitted).catch(throwCheckError);
  } catch (error) {
    return throwCheckError(error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}

function requireAdmitted(result: unknown): void {
  if (result === undefined) return;
  if (typeof result !== 'object' || result === null) {
    throw checkFailed('returned neither undefined nor an AdmissionRejection');
  }
  const { status = 403, retryAfterSeconds, message } = result as Record<string, unknown>;
  if (!isWhole(status, 400, 599)) {
    throw checkFailed('returned a "status" that is not a whole number from 400 to 599');
  }
  if (retryAfterSeconds !== undefined && !isWhole(retryAfterSeconds, 0, 86_400)) {
    throw checkFailed('returned "retryAfterSeconds" that is not a whole number from 0 to 86400');
  }
  if (message !== undefined && typeof message !== 'string') {
    throw checkFailed('returned a "message" that is not a string');
  }
  const text = message ?? 'The application rejected the request.';
  throw new AdmissionCheckError(status, text, retryAfterSeconds);
}

function throwCheckError(error: unknown): never {
  throw error instanceof AdmissionCheckError
    ? error
    : checkFailed(`failed: ${describeError(error)}`);
}

function checkFailed(reason: string): AdmissionCheckError {
  return new AdmissionCheckError(
    503,
    "The application's own check of the request failed; the log contains the cause.",
    undefined,
    `The check "webhook.before" of the application ${reason}. The response is 503, so that the service sends the event again.`,
  );
}

/** How many chunks a body may have, in addition to one per {@link BYTES_PER_CHUNK} bytes. */
const FREE_CHUNKS = 4096;
const BYTES_PER_CHUNK = 64;

/** How long a sender may continue to send after its webhook request was rejected, in milliseconds. */
const DISCARD_MS = 5000;

const TYPES_WITH_TEXT: ReadonlySet<string> = new Set(['string', 'number', 'bigint', 'boolean']);

/**
 * Returns the text of a header value of any type. Node.js sets strings and arrays, and adapters of serverless platforms
 * also set numbers. Joins several values with commas, as Node.js does. Returns `undefined` for an object, a function,
 * `null` and an empty list. Never throws.
 */
export function headerText(value: unknown): string | undefined {
  if (!Array.isArray(value)) return primitiveText(value);
  const texts = value.map(primitiveText).filter((text) => text !== undefined);
  return texts.length === 0 ? undefined : texts.join(', ');
}

function primitiveText(value: unknown): string | undefined {
  return TYPES_WITH_TEXT.has(typeof value) ? String(value) : undefined;
}

/** Returns the path parameter `company` of a route, or `default` if there is none. The value is not checked. */
export function companyParam(params: unknown): unknown {
  return (params as Record<string, unknown> | null | undefined)?.['company'] ?? DEFAULT_COMPANY;
}

/** @throws PaymentsError `company_unknown` */
export function requireCompanyId(id: unknown): string {
  // If the application's own route has a wildcard with this name, the id is an array and not a string.
  if (!isCompanyId(id)) throw companyUnknown();
  return id;
}

export function companyUnknown(): PaymentsError {
  return new PaymentsError(
    'company_unknown',
    'The path names no company that this application receives webhook requests for.',
  );
}

/**
 * Reads the body of a request, byte for byte, and counts its bytes as pending.
 *
 * @throws PaymentsError `payload_too_large` or `webhook_busy`, as soon as a limit is exceeded; the error that the
 *   pending request is rejected with; or the error of the stream, if the sender closes the connection.
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
  /** The bytes of the body, which Nest's option `rawBody` and several serverless platforms set. */
  readonly rawBody?: unknown;
  /** The body as bytes or as a string. A parsed body is ignored. */
  readonly body?: unknown;
}

/**
 * Returns the bytes of a body that other code has read; `undefined` if that code has left none. A string is encoded as
 * UTF-8, so the signature does not match if the sender used another encoding.
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
 * Allows code that runs later to read a body that this module has already read. Without this function, middleware that
 * waits for the event `end` would wait until the connection closes, because a stream emits this event only once. Each
 * new `data` listener gets the bytes, and each new `end` listener is called right afterwards. Body parsers do not
 * listen, because they detect that the stream has ended.
 */
export function emitBodyAgain(stream: Readable, pending: PendingRequest): void {
  // The bytes may come from a property, and a request of a serverless adapter may not be a stream.
  if (!stream.readableEnded) return;
  stream.on('newListener', (event: string | symbol, listener: (chunk?: unknown) => void) => {
    if (event === 'end') setImmediate(() => listener.call(stream));
    // The bytes are emitted at once, because `pipe()` ends its destination before the next turn if the source has
    // ended.
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
  // The listener gets a copy, because middleware may change the bytes before their signature is checked.
  listener.call(stream, readableEncoding ? body.toString(readableEncoding) : Buffer.from(body));
}

/**
 * Ignores the rest of the body of a rejected request. The connection stays open, so that the sender can read the
 * response. Closes the connection if the sender does not stop sending within 5 s, or if it sends too many small chunks.
 *
 * @param body the stream of the body: the request itself, or the stream with which a hook of the application has
 *   replaced it
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
  // Node.js also ignores data that has no listener, but this listener counts the chunks.
  body.on('data', (chunk: Buffer | string) => {
    if (!chunks.add(chunk.length)) request.destroy();
  });
  request.once(
    'close',
    runtime.schedule(DISCARD_MS, () => request.destroy()),
  );
}

/** Counts the chunks of a body, because each chunk costs Node.js as much time as thousands of bytes. */
export class ChunkCount {
  #chunks = 0;
  #bytes = 0;

  /** Adds a chunk with this number of bytes. Returns `false` if there are too many chunks for the bytes so far. */
  add(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    return this.#chunks <= FREE_CHUNKS + this.#bytes / BYTES_PER_CHUNK;
  }
}

function payloadTooLarge(limitBytes: number): PaymentsError {
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
