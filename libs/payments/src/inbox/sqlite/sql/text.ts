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
 * A hash of texts, of 16 bytes: so much shorter than the texts are that an index of them fits into far fewer pages. JSON
 * escapes what separates the texts, so no two lists of texts are hashed as one.
 */
export function hashOf(...texts: readonly string[]): Uint8Array {
  return hash('sha256', JSON.stringify(texts), 'buffer').subarray(0, 16);
}

/** Identifies the deliveries of a handler that never run at the same time. */
export function orderingOf(company: string, orderingKey: string | null): Uint8Array | null {
  return orderingKey === null ? null : hashOf(company, orderingKey);
}
