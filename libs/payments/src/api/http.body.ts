import type { Readable } from 'node:stream';

/**
 * Reads a stream to its end, or to its `limit` in bytes: then the rest is dropped, with its connection. The
 * stream is the decompressed one, so that a small answer can't unfold into a large one: what is held is never
 * more than the limit and one chunk.
 */
export async function readCapped(
  stream: Readable,
  limit: number,
): Promise<{ bytes: Buffer; whole: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    chunks.push(chunk);
    // Leaving the loop destroys the stream.
    if (length > limit) return { bytes: Buffer.concat(chunks).subarray(0, limit), whole: false };
  }
  return { bytes: Buffer.concat(chunks), whole: true };
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
