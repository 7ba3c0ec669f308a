import type { Readable } from 'node:stream';

/** What was read of a body. */
export interface ReadBody {
  readonly bytes: Buffer;
  /** Whether that is all of it, and not all that there was room for. */
  readonly whole: boolean;
  /** What broke the reading off, or undefined. */
  readonly error?: unknown;
}

/** The chunks of a body, up to a limit in bytes: what is held is never more than the limit and one chunk. */
export class CappedBody {
  readonly #chunks: Buffer[] = [];
  readonly #limit: number;
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Takes a chunk, and says whether the body is within its limit still. */
  add(chunk: Buffer): boolean {
    this.#length += chunk.length;
    this.#chunks.push(chunk);
    return this.#length <= this.#limit;
  }

  read(error?: unknown): ReadBody {
    const whole = this.#length <= this.#limit;
    const [first] = this.#chunks;
    const bytes = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    return { bytes: whole ? bytes : bytes.subarray(0, this.#limit), whole, error };
  }
}

/**
 * Reads a stream to its end, or to its `limit` in bytes: then the rest is dropped, with its connection. The
 * stream is the decompressed one, so that a small answer can't unfold into a large one. Never rejects.
 */
export async function readCapped(stream: Readable, limit: number): Promise<ReadBody> {
  const body = new CappedBody(limit);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      // Leaving the loop destroys the stream.
      if (!body.add(chunk)) break;
    }
    return body.read();
  } catch (error) {
    return body.read(error);
  }
}

/**
 * What a body holds: `undefined` where it is empty, its value where it is JSON, else its text.
 *
 * It is tried as JSON where it says so, or looks like an object or an array: the service's page shows no content
 * type of an answer, and a text that happens to be a number should stay the text it was.
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
