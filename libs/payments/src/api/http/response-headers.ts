/** Headers that contain credentials or request them. */
const HIDDEN = new Set(
  `authorization x-auth-token set-cookie set-cookie2 cookie www-authenticate
  proxy-authenticate proxy-authorization authentication-info`.split(/\s+/),
);

/** The headers of an answer that contain neither credentials nor the token. */
export function shownHeaders(
  headers: Readonly<Record<string, string>>,
  token: string,
): Readonly<Record<string, string>> {
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!HIDDEN.has(name) && !value.includes(token)) shown[name] = value;
  }
  return Object.freeze(shown);
}

/** The service's id of the request; `undefined` if there is none, or if it is not fit for a log line. */
export function requestIdOf(
  headers: Readonly<Record<string, string>>,
  header: string,
  token: string,
): string | undefined {
  const id = headers[header];
  return id !== undefined && /^[\x21-\x7e]{1,200}$/.test(id) && !id.includes(token)
    ? id
    : undefined;
}

/**
 * Reads a `Retry-After` header (RFC 9110, section 10.2.3): seconds, or a date.
 *
 * @param now the wall clock, in milliseconds since the epoch
 * @returns milliseconds from now, not negative; `undefined` if there is none or it is invalid
 */
export function parseRetryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim();
  if (!text) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse alone would read '-5' or '1.5' as a year.
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
