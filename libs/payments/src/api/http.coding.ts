import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/** The `Accept-Encoding` of a request: what {@link decoderOf} knows, but for `deflate`, of which there are two. */
export const ACCEPTED_CODINGS = 'gzip, br';

const DECODERS: ReadonlyMap<unknown, () => Transform> = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** What makes a stream that decompresses a body of this `Content-Encoding`; undefined where it is to be left as it is. */
export function decoderOf(coding: string | string[] | undefined): (() => Transform) | undefined {
  return DECODERS.get(typeof coding === 'string' ? coding.trim().toLowerCase() : undefined);
}
