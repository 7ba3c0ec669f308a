import { finished, type Readable } from 'node:stream';

/** The smallest buffer that is allocated for a body of several chunks, in bytes. */
const FIRST_CAPACITY = 4096;

/**
 * The bytes of a body, up to a limit. They are kept in one buffer that grows up to the limit: a list of chunks
 * would take about 30 times as much memory for a body that comes in chunks of one byte.
 */
export class CappedBody {
  readonly #limit: number;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;
  #whole = true;
  /** What interrupted the body, if anything did. */
  error: unknown;

  /** @param limit in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a chunk. Returns whether the body is still within its limit. */
  add(chunk: Uint8Array): boolean {
    const room = this.#limit - this.#length;
    if (chunk.length > room) this.#whole = false;
    const kept = this.#whole ? chunk : chunk.subarray(0, room);
    const length = this.#length + kept.length;
    if (this.#length === 0) {
      // Most bodies are one chunk, which is not copied.
      this.#buffer = Buffer.from(kept.buffer, kept.byteOffset, kept.length);
    } else {
      this.#reserve(length);
      this.#buffer.set(kept, this.#length);
    }
    this.#length = length;
    return this.#whole;
  }

  /** The body, cut at the limit. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Whether the body is within its limit. */
  get whole(): boolean {
    return this.#whole;
  }

  #reserve(length: number): void {
    if (length <= this.#buffer.length) return;
    const doubled = Math.max(length, this.#buffer.length * 2, FIRST_CAPACITY);
    const larger = Buffer.allocUnsafe(Math.min(doubled, this.#limit));
    larger.set(this.bytes);
    this.#buffer = larger;
  }
}

/**
 * Reads a decompressed stream to its end, or up to `limit` bytes: then it destroys the stream, and with it the
 * connection. Never rejects: an error is in the result.
 */
export function readCapped(stream: Readable, limit: number): Promise<CappedBody> {
  const body = new CappedBody(limit);
  return new Promise((resolve) => {
    finished(stream, { writable: false }, (error) => {
      if (body.whole) body.error = error ?? undefined;
      resolve(body);
    });
    // Not `for await`: it queues the chunks that arrive together, one object each.
    stream.on('data', (chunk: Uint8Array) => {
      if (body.whole && !body.add(chunk)) stream.destroy();
    });
  });
}

/**
 * The value of a body: `undefined` if it is empty, the parsed value if it is JSON, otherwise its text.
 *
 * It is parsed if its content type is JSON, or if it looks like an object or an array. Other text is not
 * parsed, because a text that happens to be a number must stay a text.
 */
export function parseBody(bytes: Buffer, contentType: string | undefined): unknown {
  if (bytes.length === 0) return undefined;
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (/^[^;]*[/+]json\s*(?:;|$)/i.test(contentType ?? '') || /^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  }
  return text;
}
