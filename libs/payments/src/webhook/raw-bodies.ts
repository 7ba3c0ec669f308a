import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';

/** A body as it came, and when its request did. */
export interface RawBody {
  readonly bytes: Buffer;
  /** On the runtime's monotonic clock, in milliseconds. */
  readonly arrivedAt: number;
}

/** The raw bodies of the requests under way, from the middleware that read them to the guard that verifies. */
@Injectable()
export class RawBodies {
  readonly #bodies = new WeakMap<IncomingMessage, RawBody | null>();

  /** Keeps a body; `null` says that it is gone, whatever a parser makes of the request later. */
  set(request: IncomingMessage, body: RawBody | null): void {
    this.#bodies.set(request, body);
  }

  /** The body, `null` where it is gone, or `undefined` where the middleware has left the request alone. */
  get(request: IncomingMessage): RawBody | null | undefined {
    return this.#bodies.get(request);
  }
}
