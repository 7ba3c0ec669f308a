import { signBody } from 'nestjs-payments';
import type { SignedWebhook } from './signed-webhook.js';

/** A well-formed signature of another body. */
export const FORGED = signBody(Buffer.from('another body'), 'whsec_of_nobody');
const FORM = { 'Content-Type': 'application/json', 'X-Webhook-Signature': FORGED };

/** Header lines that a test changes. `undefined` removes a header. */
type Headers = Readonly<Record<string, string | undefined>>;

/** The head of a request that announces a body of 1,000 bytes, which the test does not send. */
export function head(path = '/webhooks/payments', headers: Headers = {}): string {
  const all: Headers = { Host: 'shop', ...FORM, 'Content-Length': '1000', ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  );
  return [`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

/** The head of a webhook request. It announces the body, unless `headers` replaces `Content-Length`. */
export function headOf(webhook: SignedWebhook, headers: Headers = {}): string {
  const length = { 'Content-Length': String(webhook.body.byteLength) };
  return head(webhook.path, { ...webhook.headers, ...length, ...headers });
}

/** The head and the body of a webhook request. */
export function bytesOf(webhook: SignedWebhook, headers: Headers = {}): Buffer {
  return Buffer.concat([Buffer.from(headOf(webhook, headers)), webhook.body]);
}
