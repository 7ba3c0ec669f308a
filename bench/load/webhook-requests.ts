import { createHmac, randomUUID } from 'node:crypto';

/** The secret that signs every webhook request of the bench. The bench uses only the loopback interface. */
export const SECRET = 'whsec_bench_0123456789abcdef';

/** The signature scheme of a webhook request. */
export type Scheme = 'payments' | 'stripe';

/** A webhook request: a signed body and its headers. */
export interface Delivery {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Creates a webhook request with a new event, signed as the receiver expects. `bytes` is the approximate body size. */
export function delivery(scheme: Scheme, bytes = 0): Delivery {
  const body = Buffer.from(JSON.stringify(scheme === 'payments' ? payment(bytes) : stripe()));
  return { body, headers: { 'content-type': 'application/json', ...signature(scheme, body) } };
}

/** An envelope of the payments service with new ids. `bytes` is the approximate size of its JSON. */
function payment(bytes: number): object {
  const event = {
    id: randomUUID(),
    eventType: 'transaction.completed',
    timestamp: new Date().toISOString(),
    data: {
      transactionId: randomUUID(),
      status: 'complete',
      amount: 1500,
      accountReference: 'INV-1001',
      externalReference: 'order-77',
    },
    metadata: {},
  };
  const missing = bytes - JSON.stringify(event).length - '"note":""'.length;
  return missing > 0 ? { ...event, metadata: { note: 'x'.repeat(missing) } } : event;
}

/** Creates a Stripe event with the same facts and nearly the same size. */
function stripe(): object {
  return {
    id: `evt_${randomUUID()}`,
    object: 'event',
    livemode: true,
    type: 'charge.succeeded',
    created: Math.floor(Date.now() / 1000),
    data: {
      object: {
        id: `ch_${randomUUID()}`,
        status: 'succeeded',
        amount: 1500,
        description: 'INV-1001',
        order: 'order-77',
      },
    },
  };
}

/** The signature header of a body. */
export function signature(scheme: Scheme, body: Buffer): Record<string, string> {
  if (scheme === 'payments') {
    return { 'x-webhook-signature': `sha512=${hmac('sha512', body)}` };
  }
  const time = Math.floor(Date.now() / 1000);
  const signed = Buffer.concat([Buffer.from(`${time}.`), body]);
  return { 'stripe-signature': `t=${time},v1=${hmac('sha256', signed)}` };
}

/** The HMAC of a body with {@link SECRET}, as hexadecimal digits. */
export function hmac(algorithm: 'sha256' | 'sha512', body: Buffer): string {
  return createHmac(algorithm, SECRET).update(body).digest('hex');
}
