const BEARER = /^bearer +([^\s,]+)$/i;

/**
 * The token of a request: in `Authorization` or, equally, in `x-auth-token`, with the `Bearer`
 * prefix in both (section 5 of the service's page).
 *
 * Undefined where there is none, where a header is malformed, or where both are sent and differ:
 * the service does not show what it makes of that, and a client that does it has a bug to see.
 */
export function readBearerToken(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | undefined {
  const sent = [headers['authorization'], headers['x-auth-token']].filter(
    (header) => header !== undefined,
  );
  const tokens = new Set(sent.map((header) => BEARER.exec(String(header))?.[1]));
  return tokens.size === 1 ? [...tokens][0] : undefined;
}
