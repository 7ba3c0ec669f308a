import { timingSafeEqual } from 'node:crypto';
import { SigningKey } from '../companies/company.js';
import { PaymentsError } from '../errors/payments-error.js';

export const SIGNATURE_HEADER = 'x-webhook-signature';

const SCHEME = 'sha512=';
const SHA512_BYTES = 64;
// Node.js joins the values of a repeated header with commas. Each value costs a comparison, and the sender is not
// verified yet, so the number of values is limited.
const MAX_CANDIDATES = 10;

/**
 * Returns the signature of a body: `sha512=` and the lower-case hex of HMAC-SHA512 over the raw bytes.
 *
 * @example
 * ```ts
 * signBody(Buffer.from('{}'), 'whsec_1'); // 'sha512=…', 135 characters
 * ```
 */
export function signBody(body: Uint8Array, secret: string | SigningKey): string {
  const key = typeof secret === 'string' ? new SigningKey(secret) : secret;
  return SCHEME + key.sign(body).toString('hex');
}

/**
 * Checks the signature of a webhook request over the bytes of its body as sent, in constant time, with every accepted
 * secret. Returns if one of the secrets gives the signature, otherwise throws.
 *
 * @param header value of `X-Webhook-Signature`: one signature, or at most 10 signatures joined by commas, one of which
 *   must match.
 * @param secrets the accepted secrets, current first. To verify many webhook requests with the same secrets, create a
 *   {@link SigningKey} of each secret once.
 * @throws {@link PaymentsError} `signature_missing`, `signature_malformed` or `signature_mismatch`.
 * @example
 * ```ts
 * const keys = [new SigningKey(process.env.PAYMENTS_WEBHOOK_SECRET!)];
 * verifySignature(body, request.headers['x-webhook-signature'], keys);
 * ```
 */
export function verifySignature(
  body: Uint8Array,
  header: string | undefined,
  secrets: readonly (string | SigningKey)[],
): void {
  const candidates = parseSignatures(header);
  const keys = secrets.map((secret) =>
    typeof secret === 'string' ? new SigningKey(secret) : secret,
  );
  requireMatch(body, candidates, keys);
}

/**
 * Like {@link verifySignature}, but with a parsed header and with prepared keys. Returns the index of the last key that
 * gives the signature.
 */
export function requireMatch(
  body: Uint8Array,
  candidates: readonly Buffer[],
  keys: readonly SigningKey[],
): number {
  // All pairs are compared, also after a match, so that the time taken does not reveal which secret matched.
  let match = -1;
  for (const [index, key] of keys.entries()) {
    const expected = key.sign(body);
    for (const candidate of candidates) if (timingSafeEqual(expected, candidate)) match = index;
  }
  if (match === -1) {
    throw new PaymentsError(
      'signature_mismatch',
      'No accepted webhook secret gives this signature for the received bytes. Check that the webhook secret of this ' +
        'company is the one that the service has, and that no proxy changes the body.',
    );
  }
  return match;
}

/**
 * Returns the SHA-512 values in the header, at least one. Ignores malformed values if at least one value is
 * well-formed.
 *
 * @throws {@link PaymentsError} `signature_missing` or `signature_malformed`.
 */
export function parseSignatures(header: string | undefined): Buffer[] {
  if (header === undefined || header.trim() === '') {
    throw new PaymentsError(
      'signature_missing',
      'The request has no X-Webhook-Signature header; only signed webhook requests are accepted.',
    );
  }
  const parts = header.split(',', MAX_CANDIDATES + 1);
  const candidates: Buffer[] = [];
  for (const part of parts) {
    const candidate = parseSignature(part.trim());
    if (candidate !== undefined) candidates.push(candidate);
  }
  if (candidates.length === 0 || parts.length > MAX_CANDIDATES) {
    throw new PaymentsError(
      'signature_malformed',
      'The X-Webhook-Signature header must contain 1 to 10 values, at least one of them "sha512=" followed by exactly 128 hex digits.',
    );
  }
  return candidates;
}

function parseSignature(text: string): Buffer | undefined {
  if (text.length !== SCHEME.length + 2 * SHA512_BYTES || !text.startsWith(SCHEME))
    return undefined;
  // At a character that is not a hex digit, Buffer.from() stops, and the result is too short. But `Buffer.from()` reads
  // a character above U+00FF as its low byte, which may be a hex digit. Therefore, the text must be ASCII: it must have
  // as many bytes as characters.
  const bytes = Buffer.from(text.slice(SCHEME.length), 'hex');
  return bytes.length === SHA512_BYTES && Buffer.byteLength(text) === text.length
    ? bytes
    : undefined;
}
