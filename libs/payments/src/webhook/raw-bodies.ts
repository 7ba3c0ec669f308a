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
  readonly #bodies = new WeakMap<IncomingMessage, RawBody>();

  set(request: IncomingMessage, body: RawBody): void {
    this.#bodies.set(request, body);
  }

  get(request: IncomingMessage): RawBody | undefined {
    return this.#bodies.get(request);
  }
}
