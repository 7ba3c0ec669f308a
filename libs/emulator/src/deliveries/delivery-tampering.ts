import type { DrawnAttemptFaults } from '../faults/delivery-faults.js';

/** Changes a body that has already been signed. */
export function tamperBody(
  body: Uint8Array,
  how: NonNullable<DrawnAttemptFaults['tamperBody']>,
): Uint8Array {
  const text = Buffer.from(body).toString('utf8');
  if (how === 'truncate') return body.subarray(0, Math.floor(body.length / 2));
  const event = JSON.parse(text) as { id: string; data: Record<string, unknown> };
  if (how === 'respace') return Buffer.from(JSON.stringify(event, null, 1));
  if (typeof event.data['amount'] === 'number') event.data['amount'] += 1;
  else event.id = event.id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
  return Buffer.from(JSON.stringify(event));
}

/** Returns an invalid `X-Webhook-Signature`, or undefined to omit the header. */
export function tamperSignature(
  signature: string,
  how: NonNullable<DrawnAttemptFaults['tamperSignature']>,
): string | undefined {
  if (how === 'missing') return undefined;
  if (how === 'malformed') return signature.slice(0, -2);
  if (how === 'scheme') return signature.replace(/^sha512=/, 'sha256=');
  return signature.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
}
