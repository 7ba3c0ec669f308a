import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { signDelivery } from './delivery.signature.js';

interface Vector {
  readonly name: string;
  readonly secrets: string[];
  readonly body: string;
  readonly header: string | null;
  readonly expect: string;
}

const file = new URL('../../../../test/vectors/webhook-signatures.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Vector[] };

/** Every signature a header lists, in lower case. */
function listed(header: string | null): string[] {
  return (header ?? '').split(',').map((signature) => signature.trim().toLowerCase());
}

describe('signDelivery, against signatures made in another language', () => {
  const valid = cases.filter((each) => each.expect === 'valid' && each.secrets.length === 1);

  it('has vectors to run', () => {
    expect(valid.length).toBeGreaterThan(20);
  });

  it.each(valid)('makes the signature of: $name', ({ secrets, body, header }) => {
    const signature = signDelivery(Buffer.from(body, 'base64'), secrets[0] as string);
    expect(listed(header)).toContain(signature);
  });

  const mismatched = cases.filter((each) => each.header && each.expect === 'signature_mismatch');

  it.each(mismatched)('does not make the signature of: $name', ({ secrets, body, header }) => {
    for (const secret of secrets) {
      expect(listed(header)).not.toContain(signDelivery(Buffer.from(body, 'base64'), secret));
    }
  });
});
