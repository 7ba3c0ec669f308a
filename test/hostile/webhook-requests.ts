import { createHmac } from 'node:crypto';

/** A company of the application's directory. The sender and the attackers know its secret. */
export interface TestCompany {
  readonly id: string;
  readonly secret: string;
}

/** Text in every request body. It must not appear in the application's log. */
export const PAYLOAD_MARKER = 'payload-marker-5f1c';

/** The companies that the payments service sends events to. The directory ignores the case of their ids. */
export const COMPANIES: readonly TestCompany[] = ['acme', 'duka', 'soko', 'Zuri'].map((id) => ({
  id,
  secret: `whsec-${id}-8Jq2vN4x`,
}));

/** All secrets in the application's configuration. */
export const SECRETS: readonly string[] = [
  ...COMPANIES.map(({ secret }) => secret),
  'client-secret-3kT9',
  'access-token-7Qm1',
];

/** A webhook request to send. */
export interface WebhookRequest {
  readonly path: string;
  readonly signature: string;
  readonly body: Buffer;
}

/** `sha512=` and the HMAC of the body, computed without the package under test. */
export function sign(body: Uint8Array | string, secret: string): string {
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}

/** A correctly signed webhook request with an event. `padding` is the number of additional bytes in the body. */
export function validRequest(
  company: TestCompany,
  id: string,
  { padding = 0, timestamp = new Date().toISOString() } = {},
): WebhookRequest {
  const data = { note: PAYLOAD_MARKER, padding: 'x'.repeat(padding) };
  const event = { id, eventType: 'order.paid', timestamp, data };
  return signedRequest(company, Buffer.from(JSON.stringify(event)));
}

/** A correctly signed webhook request with any bytes as its body. */
export function signedRequest(company: TestCompany, body: Buffer): WebhookRequest {
  const path = `/webhooks/payments/${company.id}`;
  return { path, signature: sign(body, company.secret), body };
}

/** Key of an event in the sets of handled events. */
export function eventKey(company: string, id: string): string {
  return JSON.stringify([company, id]);
}
