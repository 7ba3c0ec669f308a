import { Injectable } from '@nestjs/common';
import type { PendingRequest } from './pending-requests.js';

/** A request that passed admission. Its bytes and signatures are hidden from `util.inspect`. */
export class AdmittedRequest {
  #bytes: Buffer | undefined;
  #refusal: { readonly error: unknown } | null = null;
  readonly #signatures: readonly Buffer[];
  readonly #pending: PendingRequest;

  constructor(
    bytes: Buffer | undefined,
    signatures: readonly Buffer[],
    pending: PendingRequest,
    /** On the runtime's monotonic clock, in milliseconds. */
    readonly arrivedAt: number,
  ) {
    this.#bytes = bytes;
    this.#signatures = signatures;
    this.#pending = pending;
    // Its bytes no longer count as pending then, so they must not stay in memory.
    pending.onRefusal((error) => {
      this.#bytes = undefined;
      this.#refusal = { error };
    });
  }

  /**
   * The body as it came; `undefined` if something else has read it and left no bytes.
   *
   * @throws what the request was refused with since its admission.
   */
  get bytes(): Buffer | undefined {
    if (this.#refusal) throw this.#refusal.error;
    return this.#bytes;
  }

  /** The well-formed values of the signature header, at least one. */
  get signatures(): readonly Buffer[] {
    return this.#signatures;
  }

  /** Its place among the requests whose signature is not verified yet. */
  get pending(): PendingRequest {
    return this.#pending;
  }
}

/** The admitted requests, from the middleware that read them to the guard that verifies them. */
@Injectable()
export class AdmittedRequests {
  /** A property of the request: a WeakMap with an entry for each request is work for every garbage collection. */
  readonly #key = Symbol('nestjs-payments: admitted request');

  set(request: object, admitted: AdmittedRequest): void {
    (request as Record<symbol, AdmittedRequest>)[this.#key] = admitted;
  }

  /** `undefined` if the middleware did not see the request. */
  get(request: unknown): AdmittedRequest | undefined {
    return (request as Record<symbol, AdmittedRequest | undefined> | null | undefined)?.[this.#key];
  }
}
