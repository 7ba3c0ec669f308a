/**
 * PostgreSQL's text holds any character except U+0000, and UTF-8 has no lone surrogates; texts from JSON may have both.
 * They are stored escaped, as is the escape character itself (a private-use one), so that different texts stay different
 * and are read as they were written.
 */
const ESCAPE = '\uE000';
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\uE000]|\p{Surrogate}/gu;
const ESCAPED = /\uE000([0-9a-f]{4})/g;

/** A text as it can be stored. Most need no change. */
export function toStored(text: string): string {
  return text.replace(
    UNSTORABLE,
    (character) => ESCAPE + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** The text that {@link toStored} was given. */
export function fromStored(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replace(ESCAPED, (_match, code: string) => String.fromCharCode(parseInt(code, 16)));
}
