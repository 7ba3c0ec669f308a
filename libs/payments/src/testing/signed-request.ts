import type { SigningKey } from '../companies/company.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { signBody } from '../webhook/signature.js';

/** An event, or the text or bytes of a whole body, which are signed as they are. */
export type DeliveryBody = PaymentEvent | string | Uint8Array;

/** How {@link signedRequest} signs. */
export interface SignedRequestOptions {
  /** The webhook secret of the company. */
  secret: string | SigningKey;
  /** Path of the application's webhook route. Default `/webhooks/payments`. */
  path?: string;
}

/** A whole request, as the service sends it. It can be given to `fetch()` as its second argument. */
export interface SignedRequest {
  readonly method: 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that were signed. */
  readonly body: Buffer<ArrayBuffer>;
  /** {@link body} as text, for clients such as supertest that serialize a Buffer as JSON. */
  readonly text: string;
}

/**
 * Signs an event like the service, for a test that sends the request itself. `deliver()` also finds the route and
 * the secret, and sends the request.
 *
 * @throws TypeError if the secret is empty.
 * @example
 * ```ts
 * const { path, headers, text } = signedRequest(paymentEvent('transaction.completed'), { secret: 'whsec_1' });
 * await request(app.getHttpServer()).post(path).set(headers).send(text).expect(200); // supertest
 * ```
 */
export function signedRequest(
  event: DeliveryBody,
  { secret, path = '/webhooks/payments' }: SignedRequestOptions,
): SignedRequest {
  if (!secret) throw new TypeError('signedRequest() needs the webhook secret to sign with.');
  const raw = typeof event === 'string' || event instanceof Uint8Array;
  const body = Buffer.from(raw ? (event as string) : JSON.stringify(event));
  return {
    method: 'POST',
    path,
    headers: {
      'Content-Type': 'application/json',
      'X-Webhook-Event': eventTypeOf(body),
      'X-Webhook-Signature': signBody(body, secret),
      'User-Agent': 'nestjs-payments-testing-Webhook/1.0',
    },
    body,
    text: body.toString(),
  };
}

function eventTypeOf(body: Buffer): string {
  try {
    const { eventType } = JSON.parse(body.toString()) as { eventType?: unknown };
    return typeof eventType === 'string' && /^[\x20-\x7e]+$/.test(eventType)
      ? eventType
      : 'unknown';
  } catch {
    return 'unknown';
  }
}
