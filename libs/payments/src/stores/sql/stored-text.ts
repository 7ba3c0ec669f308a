import { hash } from 'node:crypto';

/** Marks an escaped character. It is a private-use character, and is escaped itself. */
const ESCAPE = '\uE000';
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\uE000]|\p{Surrogate}/gu;
const ESCAPED = /\uE000([0-9a-f]{4})/g;

/** Text that is stored unchanged. Nearly every id is such a text. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * A text as a database can store it. PostgreSQL cannot store U+0000 or a lone surrogate, some programs read SQLite's texts
 * only up to the first U+0000, and a text from JSON may have both. The function escapes them. {@link fromStored} returns
 * exactly the same text, and different texts stay different.
 */
export function toStored(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(
    UNSTORABLE,
    (character) => ESCAPE + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** Returns the original text of a result of {@link toStored}. */
export function fromStored(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replace(ESCAPED, (_match, code: string) => String.fromCharCode(parseInt(code, 16)));
}

/**
 * The hash of a company and an ordering key, which is given as stored. Deliveries of one handler with the same hash never run
 * at the same time. With 16 bytes it is much shorter than most keys, so that its indexes have far fewer pages; two keys have
 * the same hash by chance only once in 2^128. A company has no line break.
 */
export function orderingOf(company: string, orderingKey: string | null): Buffer | null {
  if (orderingKey === null) return null;
  return hash('sha256', `${company}\n${orderingKey}`, 'buffer').subarray(0, 16);
}

/** Sorts after every character in a text, so that `prefix` to `prefix + LAST` are the texts that begin with a prefix. */
export const LAST = '\u{10FFFF}';
