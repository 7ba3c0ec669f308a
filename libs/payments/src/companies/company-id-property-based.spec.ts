import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { holds } from '../../../../test/support/properties/property-check.js';
import { isCompanyId } from './company.js';

const ALLOWED = 'ABCXYZabcxyz0189._~-'.split('');
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom(...ALLOWED), maxLength: 102 }),
  fc.string({ unit: fc.constantFrom(...ALLOWED, '/', '%', '\n', ' ', 'ä', '\0'), maxLength: 5 }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('.', '..', '...', '%2e%2e', '..%2f', '__proto__', 'constructor', 'default'),
);

describe('isCompanyId', () => {
  it('isCompanyId() accepts 1 to 100 unreserved characters that are not a dot segment', () => {
    holds(
      fc.property(text, (id) => {
        const characters = id.split('').every((one) => /[a-z0-9._~-]/i.test(one) && one < '\x7f');
        const size = id.length >= 1 && id.length <= 100;
        expect(isCompanyId(id)).toBe(characters && size && id !== '.' && id !== '..');
      }),
    );
  });

  it('isCompanyId() accepts only ids that stay one path segment if a client or proxy normalizes the path', () => {
    holds(
      fc.property(text, (id) => {
        if (!isCompanyId(id)) return;
        expect(encodeURIComponent(id)).toBe(id);
        const { pathname } = new URL(`https://shop.example/webhooks/payments/${id}`);
        expect(pathname).toBe(`/webhooks/payments/${id}`);
      }),
    );
  });

  it('isCompanyId() rejects everything that is not a string', () => {
    holds(
      fc.property(fc.anything(), (id) => {
        if (isCompanyId(id)) expect(typeof id).toBe('string');
      }),
    );
  });
});
