import type { IncomingHttpHeaders } from 'node:http';

const TEXTUAL: ReadonlySet<string> = new Set(['string', 'number', 'bigint', 'boolean']);

/**
 * The text of a header's value, whatever its type: Node sets strings and arrays, adapters of serverless platforms also
 * numbers. Several values are joined with commas, as Node does. `undefined` if there is no value, or one that has no
 * sensible text. Never throws.
 */
export function headerText(value: unknown): string | undefined {
  if (!Array.isArray(value)) return primitiveText(value);
  const texts = value.map(primitiveText).filter((text) => text !== undefined);
  return texts.length === 0 ? undefined : texts.join(', ');
}

function primitiveText(value: unknown): string | undefined {
  return TEXTUAL.has(typeof value) ? String(value) : undefined;
}

/**
 * The headers that are stored with a delivery: those that the service documents, without the signature, and those that
 * identify the request in a log or a trace. An explicit list, so that no credential and no address of a person is stored.
 */
const KEPT = [
  'content-type',
  'content-length',
  'user-agent',
  'x-webhook-event',
  'x-request-id',
  'traceparent',
] as const;

/** Characters of one value. */
const MAX_LENGTH = 256;

/**
 * The headers to store, by lower-case name, without control characters and cut at 256 characters. A value without a
 * text is left out: headers are optional, so none of them can make a verified delivery fail.
 */
export function keptHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const name of KEPT) {
    const text = headers[name] === undefined ? '' : headerText(headers[name]);
    if (!text) continue;
    const clean = text.replace(/\p{Cc}+/gu, '').slice(0, MAX_LENGTH);
    // Databases reject half a character, which cutting may leave.
    if (clean !== '') kept[name] = clean.toWellFormed();
  }
  return kept;
}
