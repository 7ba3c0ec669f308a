import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { PendingRequests, webhookBusy } from './pending-requests.js';
import type { PendingRequest } from './pending-requests.js';
import {
  bytesReadBefore,
  headerText,
  payloadTooLarge,
  readRawBody,
  requireCompanyId,
} from './raw-request.js';
import type { BodyProperties } from './raw-request.js';
import { parseSignatures, SIGNATURE_HEADER } from './signature.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type {
  AdmissionCheck,
  AdmissionRequest,
  ResolvedWebhookOptions,
} from './webhook-options.js';
import { AdmissionCheckError, RequestClosedError } from './webhook-rejection.js';

/** All requests share one error object, because every request closes, and each new error would capture a stack. */
const CLOSED = new RequestClosedError();

/** A webhook request whose body is not read yet, in the terms of both Express and Fastify. */
export interface UnreadRequest {
  readonly headers: IncomingHttpHeaders;
  readonly url?: string | undefined;
  /** The connection. Requests of some serverless adapters have none. */
  readonly socket?: { readonly remoteAddress?: string | undefined } | null;
  /** Company in the path. Anything that is not a company id is rejected. */
  readonly company: unknown;
  readonly body: Readable;
  /** The request's properties with the body. They replace `body` if other code has already read the stream. */
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
   * Resolves with the pending request when its body is read. It stays pending until the caller releases it or its
   * response closes.
   *
   * @throws PaymentsError with the code of the rejection; or the error of the connection, if it closes.
   */
  async admit(unread: UnreadRequest): Promise<PendingRequest> {
    const { headers } = unread;
    requirePlainJson(headers);
    const signatures = parseSignatures(headerText(headers[SIGNATURE_HEADER]));
    requireFittingLength(headers, this.options.bodyLimitBytes);
    const check = this.#check(unread, requireCompanyId(unread.company));
    // The request may be rejected before the check ends; a later rejection of the check would then be unhandled.
    check?.catch(() => {});
    let checking = check !== undefined;
    const pending = this.pending.add(signatures);
    const { bodyTimeoutMs } = this.options;
    const cancel = this.runtime.schedule(bodyTimeoutMs, () =>
      pending.reject(
        checking
          ? checkFailed(`did not return within ${bodyTimeoutMs} ms`)
          : bodyTimeout(bodyTimeoutMs),
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

  #check(unread: UnreadRequest, company: string): Promise<void> | undefined {
    const { before } = this.options;
    if (!before) return undefined;
    const { url = '', headers, socket, request } = unread;
    return runCheck(before, { company, url, headers, address: socket?.remoteAddress, request });
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
 * Rejects content types other than JSON, and encoded bodies: the signature is over the bytes as sent, so this package
 * does not decode them.
 *
 * @throws PaymentsError `content_type_unsupported` or `content_encoding_unsupported`.
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
      'A webhook request must not have a Content-Encoding: its signature is over the bytes as sent.',
    );
  }
}

function isJson(contentType: unknown): boolean {
  // Node.js keeps the first of several values; a serverless adapter may keep all of them.
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

/**
 * Runs the application's own check. Returns a promise if the check returns one.
 *
 * @throws AdmissionCheckError if the check rejects the request or fails; a returned promise rejects with this error.
 */
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
  if (!isInteger(status, 400, 599)) {
    throw checkFailed('returned a "status" that is not a whole number from 400 to 599');
  }
  if (retryAfterSeconds !== undefined && !isInteger(retryAfterSeconds, 0, 86_400)) {
    throw checkFailed('returned "retryAfterSeconds" that is not a whole number from 0 to 86400');
  }
  if (message !== undefined && typeof message !== 'string') {
    throw checkFailed('returned a "message" that is not a string');
  }
  const text = message ?? 'The application rejected the request.';
  throw new AdmissionCheckError(status, text, retryAfterSeconds);
}

function isInteger(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
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

function bodyTimeout(ms: number): PaymentsError {
  return new PaymentsError('body_timeout', `The body did not arrive within ${ms} ms.`);
}
