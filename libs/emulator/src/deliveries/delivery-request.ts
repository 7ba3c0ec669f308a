import { createHmac } from 'node:crypto';
import type { DrawnAttemptFaults } from '../faults/delivery-faults.js';
import { tamperBody, tamperSignature } from './delivery-tampering.js';

/** The JSON body of a delivery. */
export interface WebhookEvent {
  /** UUID, for de-duplication. All deliveries of the event have the same id. */
  readonly id: string;
  /** `transaction.completed`, `webhook.test`, or any type sent through the emulator's controls. */
  readonly eventType: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface DeliveryRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

export interface DeliveryParts {
  readonly url: string;
  /** The event's bytes, which the signature covers. */
  readonly body: Uint8Array;
  readonly secret: string;
  readonly eventType: string;
  /** The service's name in the header `User-Agent`: `<serviceName>-Webhook/1.0`. */
  readonly serviceName: string;
  readonly faults: DrawnAttemptFaults;
}

/**
 * Composes a webhook request with the four headers of every delivery. Applies the faults `tamperBody` and
 * `tamperSignature`.
 */
export function composeRequest(parts: DeliveryParts): DeliveryRequest {
  const { body, faults } = parts;
  const signature = faults.tamperSignature
    ? tamperSignature(signDelivery(body, parts.secret), faults.tamperSignature)
    : signDelivery(body, parts.secret);
  return {
    url: parts.url,
    headers: {
      'Content-Type': 'application/json',
      'X-Webhook-Event': parts.eventType,
      ...(signature === undefined ? {} : { 'X-Webhook-Signature': signature }),
      'User-Agent': `${parts.serviceName}-Webhook/1.0`,
    },
    body: new Uint8Array(faults.tamperBody ? tamperBody(body, faults.tamperBody) : body),
  };
}

/**
 * Computes the value of `X-Webhook-Signature`: `sha512=`, followed by the HMAC-SHA512 of the raw body in lower-case
 * hex. The key of the HMAC is the company's webhook secret in UTF-8.
 */
export function signDelivery(body: Uint8Array, secret: string): string {
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}
