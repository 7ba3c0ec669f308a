import { Injectable } from '@nestjs/common';
import { tooLarge } from './raw-body.js';

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
  set(request: object, body: RawBody | null): void {
    (request as Record<symbol, RawBody | null>)[this.#key] = body;
  }

  /** The body, `null` if it is gone, or `undefined` if the middleware has left the request alone. */
  get(request: unknown): RawBody | null | undefined {
    return (request as Record<symbol, RawBody | null | undefined> | null | undefined)?.[this.#key];
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

function bytesOf(given: unknown): Buffer | undefined {
  if (Buffer.isBuffer(given)) return given;
  if (given instanceof Uint8Array || typeof given === 'string') return Buffer.from(given);
  return undefined;
}
