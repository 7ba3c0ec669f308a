import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ADAPTERS,
  BODY_OPTIONS,
  STAGES,
  WebhookApplication,
  company,
} from '../support/webhook/webhook-application.js';

interface Vector {
  name: string;
  secrets: string[];
  body: string;
  header: string | null;
  expect: string;
  payload?: 'ok' | 'payload_invalid';
}

const { cases } = JSON.parse(
  readFileSync(new URL('../vectors/webhook-signatures.json', import.meta.url), 'utf8'),
) as { cases: Vector[] };

// One company for every set of secrets, so that one application judges all the vectors. The sets have secrets in common,
// which is refused in a list of companies, but not from a directory.
const secretSets = [...new Set(cases.map(({ secrets }) => JSON.stringify(secrets)))];
const companies = secretSets.map((secrets, index) =>
  company(`c${index}`, JSON.parse(secrets) as string[]),
);
const companyOf = ({ secrets }: Vector) => `c${secretSets.indexOf(JSON.stringify(secrets))}`;

/** Status and code that the vector's words mean over HTTP. */
function promised(vector: Vector): { status: number; code?: string } {
  if (vector.expect !== 'valid') return { status: 401, code: vector.expect };
  if (vector.payload === 'payload_invalid') return { status: 400, code: 'payload_invalid' };
  return { status: 200 };
}

describe.each(STAGES)('signature vectors on $adapter with $option', ({ adapter, option }) => {
  let app: WebhookApplication;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      payments: { companies: { find: (id) => companies.find((known) => known.id === id) } },
    });
  });
  afterAll(async () => app.app.close());

  it.each(cases)('Signature: "$name" over HTTP is $expect', async (vector) => {
    const answer = await app.exchange(`/webhooks/payments/${companyOf(vector)}`, {
      headers: [
        'Content-Type',
        'application/json',
        ...(vector.header === null ? [] : ['X-Webhook-Signature', vector.header]),
      ],
      body: Buffer.from(vector.body, 'base64'),
    });
    const { status, code } = promised(vector);
    expect(answer.status).toBe(status);
    expect(answer.body['code']).toBe(code);
    if (vector.header !== null && vector.header.length > 20) {
      expect(answer.text).not.toContain(vector.header.slice(7, 27));
    }
    for (const secret of vector.secrets) expect(answer.text).not.toContain(secret);
  });
});
