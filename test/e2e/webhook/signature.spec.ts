import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebhookApplication, company } from '../../support/webhook/webhook-application.js';

interface Vector {
  name: string;
  secrets: string[];
  body: string;
  header: string | null;
  expect: string;
  payload?: 'ok' | 'payload_invalid';
}

const { cases } = JSON.parse(
  readFileSync(new URL('../../vectors/webhook-signatures.json', import.meta.url), 'utf8'),
) as { cases: Vector[] };

// One company for every set of secrets, so that one application checks all vectors. Some sets have the same secrets, which
// a list of companies rejects and a directory does not.
const secretSets = [...new Set(cases.map(({ secrets }) => JSON.stringify(secrets)))];
const companies = secretSets.map((secrets, index) =>
  company(`c${index}`, JSON.parse(secrets) as string[]),
);
const companyOf = ({ secrets }: Vector) => `c${secretSets.indexOf(JSON.stringify(secrets))}`;

/** HTTP status and code for the expected result of a vector. */
function promised(vector: Vector): { status: number; code?: string } {
  if (vector.expect !== 'valid') return { status: 401, code: vector.expect };
  if (vector.payload === 'payload_invalid') return { status: 400, code: 'payload_invalid' };
  return { status: 200 };
}

describe('signature vectors from a program in another language', () => {
  let app: WebhookApplication;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      payments: { companies: { find: (id) => companies.find((known) => known.id === id) } },
    });
  });
  afterAll(async () => app.app.close());

  it('the file has more than 60 signature vectors', () => {
    expect(cases.length).toBeGreaterThan(60);
  });

  it.each(cases)('Signature: the vector "$name" results in $expect over HTTP', async (vector) => {
    const response = await app.exchange(`/webhooks/payments/${companyOf(vector)}`, {
      headers: [
        'Content-Type',
        'application/json',
        ...(vector.header === null ? [] : ['X-Webhook-Signature', vector.header]),
      ],
      body: Buffer.from(vector.body, 'base64'),
    });
    const { status, code } = promised(vector);
    expect(response.status).toBe(status);
    expect(response.body['code']).toBe(code);
    if (vector.header !== null && vector.header.length > 20) {
      expect(response.text).not.toContain(vector.header.slice(7, 27));
    }
    for (const secret of vector.secrets) expect(response.text).not.toContain(secret);
  });
});
