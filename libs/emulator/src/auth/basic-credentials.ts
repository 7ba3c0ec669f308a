import type { ClientCredentials } from '../companies/company.js';

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * Reads the client id and the client secret from an `Authorization` header of HTTP Basic in UTF-8. Returns undefined if
 * this header is missing or malformed.
 */
export function parseBasicCredentials(header: string | undefined): ClientCredentials | undefined {
  const base64 = BASIC.exec(header ?? '')?.[1];
  if (!base64 || base64.length % 4 !== 0) return undefined;
  const text = decodeUtf8(Buffer.from(base64, 'base64'));
  const colon = text?.indexOf(':') ?? -1;
  if (text === undefined || colon < 1) return undefined;
  return { clientId: text.slice(0, colon), clientSecret: text.slice(colon + 1) };
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
