import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { signDelivery } from './delivery-request.js';

interface Vector {
  readonly name: string;
  readonly secrets: string[];
  readonly body: string;
  readonly header: string | null;
  readonly expect: string;
}

const file = new URL('../../../../test/vectors/webhook-signatures.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Vector[] };

/** Returns all signatures of a header in lower case. */
function signaturesIn(header: string | null): string[] {
  return (header ?? '').split(',').map((signature) => signature.trim().toLowerCase());
}

describe('signDelivery compared with the test vectors', () => {
  const valid = cases.filter((each) => each.expect === 'valid' && each.secrets.length === 1);

  it('the test vectors file has more than 20 valid vectors', () => {
    expect(valid.length).toBeGreaterThan(20);
  });

  it.each(valid)(
    'signDelivery() computes the signature of the vector: $name',
    ({ secrets, body, header }) => {
      const signature = signDelivery(Buffer.from(body, 'base64'), secrets[0] as string);
      expect(signaturesIn(header)).toContain(signature);
    },
  );

  const mismatched = cases.filter((each) => each.header && each.expect === 'signature_mismatch');

  it.each(mismatched)(
    'signDelivery() computes a signature that differs from the wrong signature of the vector: $name',
    ({ secrets, body, header }) => {
      for (const secret of secrets) {
        const signature = signDelivery(Buffer.from(body, 'base64'), secret);
        expect(signaturesIn(header)).not.toContain(signature);
      }
    },
  );
});
