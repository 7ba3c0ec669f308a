import type { AttemptFaults } from '../faults/delivery.fault.js';
import type { OutgoingDelivery } from './delivery.sender.js';
import { signDelivery } from './delivery.signature.js';
import { tamperBody, tamperSignature } from './delivery.tampering.js';

/** What a delivery is made of. */
export interface DeliveryParts {
  readonly url: string;
  /** The event's bytes; these are signed. */
  readonly body: Uint8Array;
  readonly secret: string;
  readonly eventType: string;
  /** `User-Agent` is this and `-Webhook/1.0`. */
  readonly serviceName: string;
  readonly faults: AttemptFaults;
}

/** The request with the four headers of every delivery (section 6 of the service's page). */
export function composeDelivery(parts: DeliveryParts): OutgoingDelivery {
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
