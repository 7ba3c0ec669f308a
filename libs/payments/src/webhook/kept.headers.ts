import type { IncomingHttpHeaders } from 'node:http';

/**
 * The headers of a delivery that are stored with it: what section 6 of the service's page shows but for the
 * signature, and what finds the request in a log or a trace. Named one by one, so that nothing that proves who
 * somebody is, or tells where a person is, is ever among them.
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

/** What is kept of a request's headers, by lower-case name, each without control characters and bounded. */
export function keptHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const name of KEPT) {
    const value = headers[name];
    if (value === undefined) continue;
    const text = (Array.isArray(value) ? value.join(', ') : value)
      .replace(/\p{Cc}+/gu, '')
      .slice(0, MAX_LENGTH);
    if (text !== '') kept[name] = text;
  }
  return kept;
}
