import { Inject, Injectable } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';

/** Minimum age of a pending request before it can be rejected to make room for a newer one, in milliseconds. */
const GRACE_MS = 25;

/**
 * A webhook request that was admitted and whose signature is not verified yet. `util.inspect` does not show its body
 * and signatures.
 */
export class PendingRequest {
  /** Number of bytes that are buffered for its body. */
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

  /** Sets how many bytes are buffered for the body. Returns whether the limit of all pending requests allows them. */
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

  /** Releases this request, drops its body and calls the callbacks of {@link onRejection}. Does nothing after its release. */
  reject(error: unknown): void {
    if (this.#released) return;
    const callbacks = [...this.#rejectionCallbacks];
    this.release();
    // Its bytes do not count as pending any more, so they must not stay in memory.
    this.#body = undefined;
    this.#rejection = { error };
    for (const callback of callbacks) callback(error);
  }

  /** Registers a callback for {@link reject}. It is never called after the release of the request. */
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
 * The webhook requests between their admission and the check of their signature: at most `webhook.maxPending`, with at
 * most `webhook.maxPendingBytes` buffered.
 *
 * If there are too many, the oldest is rejected, unless it is younger than 25 ms. The check of a valid webhook request
 * takes a few milliseconds, so slow senders cannot displace it.
 */
@Injectable()
export class PendingRequests {
  /** Oldest first. */
  readonly #requests = new Set<PendingRequest>();
  /**
   * The property of Express's or Node's request that refers to its pending request, from the middleware to the guard. A
   * WeakMap would add an entry per request, and each entry costs time in every garbage collection.
   */
  readonly #key = Symbol('nestjs-payments: pending request');
  #bytes = 0;

  constructor(
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  /** Number of pending requests. */
  get count(): number {
    return this.#requests.size;
  }

  /** Number of bytes that are buffered for all pending requests. */
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

  /** Stores the pending request on the request of Express or Node.js, for {@link attachedTo}. */
  attach(request: object, pending: PendingRequest): void {
    (request as Record<symbol, PendingRequest>)[this.#key] = pending;
  }

  /** The pending request of a request; `undefined` if the middleware did not run for it. */
  attachedTo(request: unknown): PendingRequest | undefined {
    return (request as Record<symbol, PendingRequest | undefined> | null | undefined)?.[this.#key];
  }

  /** See {@link PendingRequest.reserve}. */
  reserve(request: PendingRequest, bytes: number): boolean {
    if (!this.#requests.has(request)) return false;
    this.#bytes += bytes - request.bytes;
    request.bytes = bytes;
    while (this.#bytes > this.options.maxPendingBytes) {
      if (!this.#rejectOldest(this.runtime.monotonic())) return false;
    }
    return this.#requests.has(request);
  }

  /** See {@link PendingRequest.release}. */
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

/** The error for a webhook request above the limits of {@link PendingRequests}. */
export function webhookBusy(): PaymentsError {
  return new PaymentsError(
    'webhook_busy',
    'Too many webhook requests whose signature is not verified yet arrive at the same time. If they are genuine, raise ' +
      '"webhook.maxPending" or "webhook.maxPendingBytes".',
  );
}
