import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/**
 * The `Accept-Encoding` of every request. `deflate` is understood but not requested, because servers disagree
 * about its format (RFC 9110, section 8.4.1.2).
 */
export const ACCEPT_ENCODING = 'gzip, br';

const DECODERS: ReadonlyMap<unknown, () => Transform> = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** Creates decompressors for a `Content-Encoding`; undefined if it is missing or unknown. */
export function decoderOf(encoding: string | string[] | undefined): (() => Transform) | undefined {
  return DECODERS.get(typeof encoding === 'string' ? encoding.trim().toLowerCase() : undefined);
}
