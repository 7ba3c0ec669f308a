import type { Readable } from 'node:stream';

/** The smallest buffer that is allocated for a body of several chunks, in bytes. */
const FIRST_CAPACITY = 4096;

const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Collects the bytes of a body up to a limit, in one buffer that grows. A list of chunks would take several hundred
 * times as much memory for a body that arrives in chunks of one byte.
 */
export class BoundedBuffer {
  readonly #limit: number;
  #buffer = EMPTY;
  /** The memory that this object allocated; `undefined` while the buffer uses the memory of the first chunk. */
  #own: ArrayBuffer | undefined;
  #length = 0;
  #whole = true;

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

  /** The body, cut at the limit. Valid until the next call of {@link add} or {@link release}. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Number of bytes that are allocated; at most the limit. */
  get capacity(): number {
    return this.#buffer.length;
  }

  /** Whether the body is within its limit. */
  get whole(): boolean {
    return this.#whole;
  }

  /** Frees the memory at once, because garbage collection is too slow for thousands of bodies. */
  release(): void {
    this.#own?.transfer(0);
    this.#own = undefined;
    this.#buffer = EMPTY;
    this.#length = 0;
  }

  #reserve(length: number): void {
    if (length <= this.#buffer.length) return;
    const doubled = Math.max(length, this.#buffer.length * 2, FIRST_CAPACITY);
    const capacity = Math.min(doubled, this.#limit);
    if (this.#own === undefined) {
      this.#own = new ArrayBuffer(capacity);
      new Uint8Array(this.#own).set(this.bytes);
    } else {
      this.#own = this.#own.transfer(capacity);
    }
    this.#buffer = Buffer.from(this.#own);
  }
}

// A closure per stream would keep the buffer in memory for as long as the stream exists.
const ignore = (): void => {};

export interface Reading {
  /**
   * Resolves when the stream has ended, or as soon as the body is larger than its limit.
   *
   * Rejects with the error of the stream, with an error if the stream closes before its end, or with the error that was
   * passed to {@link stop}.
   */
  readonly ended: Promise<void>;
  /** Stops reading and rejects `ended`. Does nothing if reading has ended. */
  readonly stop: (error: unknown) => void;
}

/**
 * Reads a stream to its end, or until the body is larger than the limit of the buffer. After that, the stream keeps
 * flowing and its data is dropped, until the caller destroys the stream.
 */
export function readInto(
  buffer: BoundedBuffer,
  stream: Readable,
  onChunk?: (chunk: Uint8Array) => void,
): Reading {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  const onData = (chunk: Uint8Array | string): void => {
    // A hook of the application may have replaced the stream by one that emits strings.
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (buffer.add(bytes)) onChunk?.(bytes);
    else onEnd();
  };
  const onEnd = (): void => {
    detach();
    resolve();
  };
  const stop = (error: unknown): void => {
    detach();
    reject(error);
  };
  const onClose = (): void => stop(new Error('The stream was closed before its end'));
  const detach = (): void => {
    stream.off('data', onData).off('end', onEnd).off('error', stop).off('close', onClose);
    // The stream may still fail, and an error event without a listener would end the process.
    if (!stream.readableEnded) stream.on('error', ignore);
  };
  if (stream.readableEnded) resolve();
  else if (stream.destroyed) onClose();
  // A `for await` loop is not used, because it queues chunks that arrive together, each in an object of its own.
  else stream.on('data', onData).on('end', onEnd).on('error', stop).on('close', onClose);
  return { ended, stop };
}
