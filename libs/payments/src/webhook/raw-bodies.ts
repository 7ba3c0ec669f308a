import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';

/** A body as it came, and when its request did. Its bytes are out of sight of `util.inspect`. */
export class RawBody {
  readonly #bytes: Buffer;

  constructor(
    bytes: Buffer,
    /** On the runtime's monotonic clock, in milliseconds. */
    readonly arrivedAt: number,
  ) {
    this.#bytes = bytes;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }
}

/** The raw bodies of the requests under way, from the middleware that read them to the guard that verifies. */
@Injectable()
export class RawBodies {
  /** Where on a request. A WeakMap of as many requests as come is work for every garbage collection. */
  readonly #key = Symbol('nestjs-payments: raw body');

  /** Keeps a body; `null` says that it is gone, whatever a parser makes of the request later. */
  set(request: IncomingMessage, body: RawBody | null): void {
    (request as unknown as Record<symbol, RawBody | null>)[this.#key] = body;
  }

  /** The body, `null` where it is gone, or `undefined` where the middleware has left the request alone. */
  get(request: IncomingMessage): RawBody | null | undefined {
    return (request as unknown as Record<symbol, RawBody | null | undefined>)[this.#key];
  }
}
