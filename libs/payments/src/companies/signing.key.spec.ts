import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { SigningKey } from './signing.key.js';

const hex = (text: string) => Buffer.from(text, 'hex');

describe('SigningKey', () => {
  // RFC 4231, sections 4.2 to 4.8, without the truncated one.
  it.each([
    [
      '0b'.repeat(20),
      hex('4869205468657265'),
      '87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854',
    ],
    [
      '4a656665',
      Buffer.from('what do ya want for nothing?'),
      '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
    ],
  ])('gives the HMAC-SHA512 of RFC 4231 for the key %s', (key, body, expected) => {
    expect(new SigningKey(hex(key).toString('latin1')).sign(body)).toEqual(hex(expected));
  });

  it.each([1, 64, 127, 128, 129, 500])(
    'agrees with createHmac() for a secret of %d bytes',
    (length) => {
      const secret = 's'.repeat(length);
      const key = new SigningKey(secret);
      for (const bytes of [0, 1, 300, 4095, 4096, 4097, 100_000]) {
        const body = Buffer.alloc(bytes, 'b');
        expect(key.sign(body)).toEqual(createHmac('sha512', secret).update(body).digest());
      }
    },
  );

  it('signs each body for itself, whatever it signed before', () => {
    const key = new SigningKey('whsec_1');
    const [first, second] = [key.sign(Buffer.from('a')), key.sign(Buffer.from('b'))];
    expect(first).not.toEqual(second);
    expect(key.sign(Buffer.from('a'))).toEqual(first);
    expect(key.sign(new Uint8Array([97]))).toEqual(first);
  });

  it('shows nothing of the secret', () => {
    const key = new SigningKey('whsec_1');
    key.sign(Buffer.from('a'));
    expect(inspect(key, { depth: 9 }) + JSON.stringify(key)).toBe('SigningKey {}{}');
  });
});
