import type { Readable } from 'node:stream';
import { BoundedBuffer, readInto } from '../../runtime/bounded-buffer.js';

/** The body of an answer, as far as it was read. */
export class AnswerBody extends BoundedBuffer {
  /** What interrupted the body, if anything did. */
  error: unknown;
}

/**
 * Reads a stream to its end, or up to `limit` bytes: then it destroys the stream, and with it the connection. Never
 * rejects: an error is in the result.
 */
export async function readBody(stream: Readable, limit: number): Promise<AnswerBody> {
  const body = new AnswerBody(limit);
  try {
    await readInto(body, stream).ended;
    if (!body.whole) stream.destroy();
  } catch (error) {
    body.error = error;
  }
  return body;
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
