import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { signBody, verifySignature } from './signature.js';

interface Vector {
  name: string;
  secrets: string[];
  body: string;
  header: string;
}

const { cases } = JSON.parse(readFileSync('test/vectors/webhook-signatures.json', 'utf8')) as {
  cases: Vector[];
};

describe('signBody', () => {
  it.each(cases.filter(({ name }) => name === 'valid' || name === 'Unicode secret'))(
    'signBody() gives the same signature for the vector "$name" as a program in another language',
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
