import { createHmac } from 'node:crypto';

/** A company of the application's directory, as the sender and the attackers know it. */
export interface TestCompany {
  readonly id: string;
  readonly secret: string;
}

/** Text that is part of every body sent, and that must not appear in the application's log. */
export const PAYLOAD_MARKER = 'payload-marker-5f1c';

/** The companies that the payments service delivers to. The directory finds them in any case of letters. */
export const COMPANIES: readonly TestCompany[] = ['acme', 'duka', 'soko', 'Zuri'].map((id) => ({
  id,
  secret: `whsec-${id}-8Jq2vN4x`,
}));

/** Everything secret that the application is configured with. */
export const SECRETS: readonly string[] = [
  ...COMPANIES.map(({ secret }) => secret),
  'client-secret-3kT9',
  'access-token-7Qm1',
];

/** A delivery to send: its path, headers and body. */
export interface Delivery {
  readonly company: string;
  readonly path: string;
  readonly signature: string;
  readonly body: Buffer;
}

/** `sha512=` and the HMAC of the body, computed without the package under test. */
export function sign(body: Uint8Array | string, secret: string): string {
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}

/** A correctly signed delivery of an event with this id. `padding`: further bytes in the body. */
export function validDelivery(
  company: TestCompany,
  id: string,
  { padding = 0, timestamp = new Date().toISOString() } = {},
): Delivery {
  const data = { note: PAYLOAD_MARKER, padding: 'x'.repeat(padding) };
  const event = { id, eventType: 'order.paid', timestamp, data };
  return deliveryOf(company, Buffer.from(JSON.stringify(event)));
}

/** A correctly signed delivery of any bytes. */
export function deliveryOf(company: TestCompany, body: Buffer): Delivery {
  const path = `/webhooks/payments/${company.id}`;
  return { company: company.id, path, signature: sign(body, company.secret), body };
}

/** How an event is named in the sets of handled events. */
export function eventKey(company: string, id: string): string {
  return JSON.stringify([company, id]);
}
