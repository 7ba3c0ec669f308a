import { timingSafeEqual } from 'node:crypto';
import { SigningKey } from '../companies/company.js';
import { PaymentsError } from '../errors/payments-error.js';

/** Name of the header that carries the signature. */
export const SIGNATURE_HEADER = 'x-webhook-signature';

const SCHEME = 'sha512=';
const SHA512_BYTES = 64;
// Node joins a header that came several times with commas. Each candidate costs a comparison, and the sender is not
// verified yet, so their number is limited.
const MAX_CANDIDATES = 10;

/**
 * The signature of a body: `sha512=` and the lower-case hex of HMAC-SHA512 over the raw bytes.
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
 * Checks a delivery's signature over the bytes as they were sent, in constant time, against every accepted
 * secret. Returns if one matches.
 *
 * @param header value of `X-Webhook-Signature`; several values joined by commas (at most 10) are each tried.
 * @param secrets the accepted secrets, current first. To verify many deliveries with the same secrets, create a
 *   {@link SigningKey} of each once.
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
 * {@link verifySignature} of a header that was parsed, with keys that were made.
 *
 * @throws {@link PaymentsError} `signature_mismatch`.
 */
export function requireMatch(
  body: Uint8Array,
  candidates: readonly Buffer[],
  keys: readonly SigningKey[],
): void {
  // Every pair is compared, matched or not, so that the time taken does not reveal which secret matched.
  let matches = 0;
  for (const key of keys) {
    const expected = key.sign(body);
    for (const candidate of candidates) matches += timingSafeEqual(expected, candidate) ? 1 : 0;
  }
  if (matches === 0) {
    throw new PaymentsError(
      'signature_mismatch',
      'No accepted webhook secret gives this signature for the bytes received. Check that the secret is the ' +
        'one set for this company at the service, and that nothing between them rewrites the body.',
    );
  }
}

/**
 * The well-formed SHA-512 values of the header, at least one.
 *
 * @throws {@link PaymentsError} `signature_missing` or `signature_malformed`.
 */
export function parseSignatures(header: string | undefined): Buffer[] {
  if (header === undefined || header.trim() === '') {
    throw new PaymentsError(
      'signature_missing',
      'The delivery has no X-Webhook-Signature header; only signed deliveries are accepted.',
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
      'The X-Webhook-Signature header holds no "sha512=" followed by exactly 128 hex digits.',
    );
  }
  return candidates;
}

function parseSignature(text: string): Buffer | undefined {
  if (text.length !== SCHEME.length + 2 * SHA512_BYTES || !text.startsWith(SCHEME))
    return undefined;
  // Decoding ends at the first character that is no hex digit: then the result is too short. But it reads a character
  // above U+00FF as its low byte, so all of them must be ASCII.
  const bytes = Buffer.from(text.slice(SCHEME.length), 'hex');
  return bytes.length === SHA512_BYTES && Buffer.byteLength(text) === text.length
    ? bytes
    : undefined;
}
