import { createHmac } from 'node:crypto';

/**
 * The value of `X-Webhook-Signature`: `sha512=` and the HMAC-SHA512 of the raw body under the
 * company's webhook secret (in UTF-8), in lower-case hex (section 6 of the service's page).
 */
export function signDelivery(body: Uint8Array, secret: string): string {
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}
