import type { IncomingHttpHeaders } from 'node:http';
import { headerText } from './header-text.js';

/**
 * The headers that are stored with a delivery: those that the service documents, without the signature, and those that
 * find the request in a log or a trace. An explicit list, so that no credential and no address of a person is stored.
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
    const text = headerText(headers[name])
      ?.replace(/\p{Cc}+/gu, '')
      .slice(0, MAX_LENGTH)
      // Databases refuse half a character, which cutting may leave.
      .toWellFormed();
    if (text) kept[name] = text;
  }
  return kept;
}
