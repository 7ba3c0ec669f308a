import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { holds } from '../../../../test/support/properties/property-check.js';
import { SigningKey } from '../companies/company.js';
import { parseSignatures, requireMatch, signBody } from './signature.js';

const hexDigits = fc.string({
  unit: fc.constantFrom(...'0123456789abcdefABCDEF'.split('')),
  minLength: 126,
  maxLength: 130,
});
const wellFormed = fc
  .uint8Array({ minLength: 64, maxLength: 64 })
  .chain((bytes) =>
    fc.mixedCase(fc.constant(Buffer.from(bytes).toString('hex')), { toggleCase: changeCase }),
  )
  .map((hex) => `sha512=${hex}`);
/** A well-formed value with one character replaced, added or removed. */
const damaged = fc
  .tuple(wellFormed, fc.nat(134), fc.string({ unit: 'binary', maxLength: 2 }))
  .map(([value, at, text]) => value.slice(0, at) + text + value.slice(at + 1));
const part = fc.oneof(
  { weight: 4, arbitrary: wellFormed },
  { weight: 2, arbitrary: damaged },
  hexDigits.map((hex) => `sha512=${hex}`),
  fc.constantFrom('', ' ', 'sha512=', 'sha256=', 'SHA512='),
  fc.string({ unit: 'binary' }),
);
const separator = fc.constantFrom(',', ', ', ' ,', ',\t', ' , ');
const header = fc.oneof(
  fc
    .tuple(fc.array(part, { maxLength: 12 }), separator)
    .map(([parts, between]) => parts.join(between)),
  fc.string({ unit: 'binary' }),
);

function changeCase(digit: string): string {
  const upper = digit.toUpperCase();
  return digit === upper ? digit.toLowerCase() : upper;
}

/** Parses the header with regular expressions, to compare the result with the parser. */
function expected(value: string): string[] | string {
  if (value.trim() === '') return 'signature_missing';
  const parts = value.split(',').map((text) => text.trim());
  const hex = parts.flatMap((text) => /^sha512=([0-9a-fA-F]{128})$/.exec(text)?.[1] ?? []);
  return hex.length === 0 || parts.length > 10
    ? 'signature_malformed'
    : hex.map((digits) => digits.toLowerCase());
}

describe('parseSignatures', () => {
  it('parseSignatures() accepts exactly the header grammar, with at most ten values', () => {
    holds(
      fc.property(header, (value) => {
        const wanted = expected(value);
        if (typeof wanted === 'string') {
          expect(codeOf(() => parseSignatures(value))).toBe(wanted);
          return;
        }
        const found = parseSignatures(value);
        expect(found.map((bytes) => bytes.toString('hex'))).toEqual(wanted);
        expect(found.length).toBeLessThanOrEqual(10);
      }),
    );
  });

  it('parseSignatures() finds a signature of signBody() at any position among ten values', () => {
    holds(
      fc.property(
        fc.uint8Array(),
        fc.string({ minLength: 1 }),
        fc.array(damaged, { maxLength: 9 }),
        fc.nat(9),
        (body, secret, others, at) => {
          const plain = others.filter((text) => !text.includes(','));
          const value = plain.toSpliced(at, 0, signBody(body, secret)).join(', ');
          requireMatch(body, parseSignatures(value), [new SigningKey(secret)]);
          expect(signBody(body, secret)).toBe(
            `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`,
          );
        },
      ),
    );
  });

  it('requireMatch() rejects a signature of other bytes, of another secret or with one bit changed', () => {
    const secret = fc.string({ minLength: 1 });
    holds(
      fc.property(fc.uint8Array(), fc.uint8Array(), secret, secret, fc.nat(511), (...given) => {
        const [body, otherBody, own, other, bit] = given;
        const key = new SigningKey(own);
        const match = (signed: Buffer) => codeOf(() => requireMatch(body, [signed], [key]));
        const changed = key.sign(body);
        changed[bit >> 3]! ^= 1 << (bit & 7);
        expect(match(changed)).toBe('signature_mismatch');
        if (!Buffer.from(body).equals(otherBody)) {
          expect(match(key.sign(otherBody))).toBe('signature_mismatch');
        }
        if (hmacKey(own) !== hmacKey(other)) {
          expect(match(new SigningKey(other).sign(body))).toBe('signature_mismatch');
        }
      }),
    );
  });
});

/** The key without trailing zero bytes: HMAC pads keys with zero bytes, so they do not change a signature. */
function hmacKey(secret: string): string {
  return secret.replace(/\0+$/, '');
}
