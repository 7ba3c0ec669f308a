import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { parseEnvelope } from '../events/payment-event.js';
import { signBody, verifySignature } from './signature.js';

interface Vector {
  name: string;
  secrets: string[];
  body: string;
  header: string | null;
  expect: string;
  payload?: 'ok' | 'payload_invalid';
}

const { cases } = JSON.parse(readFileSync('test/vectors/webhook-signatures.json', 'utf8')) as {
  cases: Vector[];
};

describe('signature vectors from a program in another language', () => {
  it('the file has more than 60 signature vectors', () => {
    expect(cases.length).toBeGreaterThan(60);
  });

  it.each(cases)(
    'verifySignature() checks the vector "$name" with the result $expect',
    (vector) => {
      const body = Buffer.from(vector.body, 'base64');
      const code = codeOf(() => verifySignature(body, vector.header ?? undefined, vector.secrets));
      expect(code ?? 'valid').toBe(vector.expect);
      if (vector.payload !== undefined) {
        expect(codeOf(() => parseEnvelope(body)) ?? 'ok').toBe(vector.payload);
      }
    },
  );

  it.each(cases.filter(({ name }) => name === 'valid' || name === 'Unicode secret'))(
    'signBody() gives the same signature for the vector "$name" as the program in the other language',
    (vector) => {
      expect(signBody(Buffer.from(vector.body, 'base64'), vector.secrets[0]!)).toBe(vector.header);
    },
  );
});

describe('verifySignature', () => {
  it('verifySignature() rejects hex digits outside ASCII, even if their low byte is a hex digit', () => {
    const body = Buffer.from('{}');
    const signature = signBody(body, 'whsec_1');
    const wide = signature.replace(/\d$|[a-f]$/, (digit) =>
      String.fromCharCode(0x100 + digit.charCodeAt(0)),
    );
    expect(codeOf(() => verifySignature(body, signature, ['whsec_1']))).toBeUndefined();
    expect(codeOf(() => verifySignature(body, wide, ['whsec_1']))).toBe('signature_malformed');
  });
});
