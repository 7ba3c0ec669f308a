import { Inject, Injectable } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';

/** How old a request has to be to be refused in favour of a newer one, in milliseconds. */
const GRACE_MS = 25;

/**
 * A request that was admitted and whose signature is not verified yet. Its body and signatures are hidden from
 * `util.inspect`.
 */
export class PendingRequest {
  /** Bytes that are buffered for it. */
  bytes = 0;
  readonly #owner: PendingRequests;
  readonly #signatures: readonly Buffer[];
  readonly #onRefusal: ((error: unknown) => void)[] = [];
  #body: Buffer | undefined;
  #released = false;
  #refusal: { readonly error: unknown } | null = null;

  constructor(
    owner: PendingRequests,
    signatures: readonly Buffer[],
    /** When it was admitted, on the runtime's monotonic clock in milliseconds. */
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
   * The body as it came; `undefined` if something else has read it and left no bytes.
   *
   * @throws what the request was refused with.
   */
  get body(): Buffer | undefined {
    if (this.#refusal) throw this.#refusal.error;
    return this.#body;
  }

  set body(body: Buffer | undefined) {
    if (!this.#refusal) this.#body = body;
  }

  /** Sets how many bytes are buffered for it. Returns whether there is room for them. */
  hold(bytes: number): boolean {
    return this.#owner.hold(this, bytes);
  }

  /** Gives its room back. Idempotent. */
  release(): void {
    this.#owner.release(this);
    this.#released = true;
    // They reference the body, and the application may hold the request for long.
    this.#onRefusal.length = 0;
  }

  /** Releases it, drops its body, and calls what {@link onRefusal} was given. Does nothing after its release. */
  refuse(error: unknown): void {
    if (this.#released) return;
    const callbacks = [...this.#onRefusal];
    this.release();
    // Its bytes do not count as pending any more, so they must not stay in memory.
    this.#body = undefined;
    this.#refusal = { error };
    for (const callback of callbacks) callback(error);
  }

  /** Adds what ends the step that the request waits for. After its release, it is never called. */
  onRefusal(callback: (error: unknown) => void): void {
    if (!this.#released) this.#onRefusal.push(callback);
  }

  /** Waits for a promise, but rejects at once if the request is refused. */
  async until<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.onRefusal(reject);
      promise.then(resolve, reject);
    });
  }
}

/**
 * The requests between their admission and the check of their signature: at most `webhook.maxPending`, with at most
 * `webhook.maxPendingBytes` buffered.
 *
 * If there is no room, the request that has waited longest is refused, unless it is younger than 25 ms: a valid
 * delivery takes a few milliseconds, so slow senders cannot keep it out.
 */
@Injectable()
export class PendingRequests {
  /** Oldest first. */
  readonly #requests = new Set<PendingRequest>();
  /**
   * A property of the application's request, from the middleware to the guard. A WeakMap with an entry for each request
   * is work for every garbage collection.
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
    if (this.#requests.size >= this.options.maxPending && !this.#refuseOldest(since)) {
      throw webhookBusy();
    }
    const request = new PendingRequest(this, signatures, since);
    this.#requests.add(request);
    return request;
  }

  /** Remembers which request of Express, or of Node, it belongs to. */
  attach(request: object, pending: PendingRequest): void {
    (request as Record<symbol, PendingRequest>)[this.#key] = pending;
  }

  /** `undefined` if the middleware did not see the request. */
  of(request: unknown): PendingRequest | undefined {
    return (request as Record<symbol, PendingRequest | undefined> | null | undefined)?.[this.#key];
  }

  /** See {@link PendingRequest.hold}. */
  hold(request: PendingRequest, bytes: number): boolean {
    if (!this.#requests.has(request)) return false;
    this.#bytes += bytes - request.bytes;
    request.bytes = bytes;
    while (this.#bytes > this.options.maxPendingBytes) {
      if (!this.#refuseOldest(this.runtime.monotonic())) return false;
    }
    return this.#requests.has(request);
  }

  /** See {@link PendingRequest.release}. */
  release(request: PendingRequest): void {
    if (this.#requests.delete(request)) this.#bytes -= request.bytes;
  }

  #refuseOldest(now: number): boolean {
    const [oldest] = this.#requests;
    if (oldest === undefined || now - oldest.since < GRACE_MS) return false;
    oldest.refuse(webhookBusy());
    return true;
  }
}

/** The error for a request that there is no room for. */
export function webhookBusy(): PaymentsError {
  return new PaymentsError(
    'webhook_busy',
    'Too many deliveries whose signature is not verified yet are being received. If they are genuine, raise ' +
      '"webhook.maxPending" or "webhook.maxPendingBytes".',
  );
}

/** The sender closed the connection, or something else answered, before the delivery was verified. It is not logged as refused. */
export class RequestClosed extends Error {
  constructor() {
    super('The request is over');
  }
}
