import { createHash } from 'node:crypto';

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

/** Text meant for people, whatever it holds. */
export function toReadable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** Longest ordering key, as stored, that an index holds as it is. */
const LANE_LENGTH = 200;

/**
 * What the deliveries of a handler that never run at the same time have in common. No company's id holds a
 * line break or a tab, so no two pairs make one.
 */
export function laneOf(company: string, orderingKey: string | null): string | null {
  if (orderingKey === null) return null;
  const key = toStored(orderingKey);
  if (key.length <= LANE_LENGTH) return `${company}\n${key}`;
  return `${company}\t${createHash('sha256').update(key).digest('hex')}`;
}
