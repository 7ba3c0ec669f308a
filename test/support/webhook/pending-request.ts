import { signBody } from 'nestjs-payments';

/** A well-formed signature of another body. */
export const FORGED = signBody(Buffer.from('another body'), 'whsec_of_nobody');
const FORM = { 'Content-Type': 'application/json', 'X-Webhook-Signature': FORGED };

/** The head of a request that announces a body of 1,000 bytes, which the test does not send. */
export function head(
  path = '/webhooks/payments',
  headers: Record<string, string | undefined> = {},
): string {
  const all = { Host: 'shop', ...FORM, 'Content-Length': '1000', ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  );
  return [`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}
