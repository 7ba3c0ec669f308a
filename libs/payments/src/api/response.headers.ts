/** Headers that carry credentials, or ask for them. */
const HIDDEN = new Set(
  `authorization x-auth-token set-cookie set-cookie2 cookie www-authenticate
  proxy-authenticate proxy-authorization authentication-info`.split(/\s+/),
);

/** The headers of an answer that are safe to show: no credentials, and none that repeats the token. */
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

/** What the service calls the request; undefined where it says nothing, or nothing that fits a log line. */
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
