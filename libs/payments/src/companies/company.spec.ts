import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { SigningKey } from './company.js';

const hex = (text: string) => Buffer.from(text, 'hex');

describe('SigningKey', () => {
  // The test cases of RFC 4231, sections 4.2 and 4.3.
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
  ])('SigningKey returns the HMAC-SHA512 of RFC 4231 for the key %s', (key, body, expected) => {
    expect(new SigningKey(hex(key).toString('latin1')).sign(body)).toEqual(hex(expected));
  });

  it.each(['', 's', 'clé secrète €', '\ud800', 's'.repeat(129)])(
    'SigningKey uses the UTF-8 encoding of the secret %j as the key',
    (secret) => {
      const body = Buffer.alloc(300, 'b');
      const expected = createHmac('sha512', Buffer.from(secret)).update(body).digest();
      expect(new SigningKey(secret).sign(body)).toEqual(expected);
    },
  );

  it('SigningKey signs each body independently of the bodies before it', () => {
    const key = new SigningKey('whsec_1');
    const first = key.sign(Buffer.from('a'));
    expect(key.sign(Buffer.from('b'))).not.toEqual(first);
    expect(key.sign(new Uint8Array([97]))).toEqual(first);
  });

  it('SigningKey hides the secret from util.inspect and JSON.stringify', () => {
    const key = new SigningKey('whsec_1');
    key.sign(Buffer.from('a'));
    expect(inspect(key, { depth: 9 }) + JSON.stringify(key)).toBe('SigningKey {}{}');
  });
});
