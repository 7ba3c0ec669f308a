const BEARER = /^bearer +([^\s,]+)$/i;

/**
 * Reads the token of a request from `Authorization` or `x-auth-token`. In both headers, the prefix `Bearer` is
 * required.
 *
 * Returns undefined if the request has neither header, if one of them is malformed, or if they contain different
 * tokens. The service does not document how it treats two different tokens. The emulator rejects the request, so that
 * the client's bug becomes visible.
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
