import { hash } from 'node:crypto';

/** What JSON escapes nothing of: nearly every id. */
const PLAIN = /^[ !#-[\]-~]*$/;

/**
 * Text as it is stored. SQLite's text is UTF-8 and ends, for some readers, at a NUL; a JavaScript string may
 * hold NULs and lone surrogates. What JSON escapes is stored escaped, so that two strings never become one;
 * an ordinary id is stored as it is.
 */
export function toStored(text: string): string {
  return PLAIN.test(text) ? text : JSON.stringify(text).slice(1, -1);
}

/** The text that {@link toStored} stored. */
export function fromStored(stored: string): string {
  return stored.includes('\\') ? (JSON.parse(`"${stored}"`) as string) : stored;
}

/** Any text, as people can read it. */
export function toReadable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/**
 * A hash of texts. With 16 bytes it is much shorter than most texts, so that its indexes have far fewer pages, and two
 * texts have the same hash by chance only once in 2^128. JSON escapes what separates the texts, so that two different
 * lists of texts are never hashed as the same bytes.
 */
export function hashOf(...texts: readonly string[]): Uint8Array {
  return hash('sha256', JSON.stringify(texts), 'buffer').subarray(0, 16);
}

/** Identifies the deliveries of a handler that never run at the same time. */
export function orderingOf(company: string, orderingKey: string | null): Uint8Array | null {
  return orderingKey === null ? null : hashOf(company, orderingKey);
}
