import { randomUUID } from 'node:crypto';
import { DEFAULT_COMPANY } from '../companies/company.js';
import type { Company } from '../companies/company.js';
import { signBody } from '../webhook/signature.js';

/** What of a company it takes to sign: the current secret, and, where there are several, the id. */
export type SigningCompany = Pick<Company, 'webhookSecret'> & Partial<Pick<Company, 'id'>>;

/** The envelope's fields; what is left out is made up. */
export interface DeliveryPayload {
  /** Default: a new UUID. */
  id?: string;
  /** Default `transaction.completed`. */
  eventType?: string;
  /** ISO 8601. Default: now. */
  timestamp?: string;
  /** Default: the data of a completed transaction with new ids. */
  data?: Record<string, unknown>;
  /** Default: an empty object. */
  metadata?: Record<string, unknown>;
}

/** A whole request, as the service would send it (section 6 of the service's page). */
export interface SignedDelivery {
  readonly method: 'POST';
  /** Path of the company at the default `webhookPath`: `/webhooks/payments`, or with the company's id behind. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that were signed. */
  readonly body: Buffer<ArrayBuffer>;
}

/**
 * Makes a signed delivery for a company: headers and bytes, to be sent to the application under test.
 *
 * @param payload the envelope's fields, or the bytes or text of a whole body, signed as they are.
 * @example
 * ```ts
 * const delivery = signedDelivery({ webhookSecret: 'whsec_1' }, { data: { transactionId: 't-1' } });
 * const response = await fetch(new URL(delivery.path, await app.getUrl()), delivery);
 * ```
 */
export function signedDelivery(
  company: SigningCompany,
  payload: DeliveryPayload | string | Uint8Array = {},
): SignedDelivery {
  const { webhookSecret, id = DEFAULT_COMPANY } = company;
  const secret = typeof webhookSecret === 'string' ? webhookSecret : webhookSecret[0];
  if (!secret) throw new TypeError('signedDelivery() needs a company with a webhookSecret.');
  const envelope =
    typeof payload === 'string' || payload instanceof Uint8Array ? null : complete(payload);
  const body = Buffer.from(envelope ? JSON.stringify(envelope) : (payload as string));
  return {
    method: 'POST',
    path: id === DEFAULT_COMPANY ? '/webhooks/payments' : `/webhooks/payments/${id}`,
    headers: {
      'Content-Type': 'application/json',
      'X-Webhook-Event': envelope?.eventType ?? eventTypeOf(body),
      'X-Webhook-Signature': signBody(body, secret),
      'User-Agent': 'nestjs-payments-testing-Webhook/1.0',
    },
    body,
  };
}

function complete(payload: DeliveryPayload): Required<DeliveryPayload> {
  return {
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
    ...payload,
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
