import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { errorOf } from '../../../../test/support/errors/thrown-error.js';
import { holds } from '../../../../test/support/properties/property-check.js';
import { callUrl } from './http-exchange.js';
import { checkPath, pathSegment, queryString } from './call-request.js';

const BASE = 'https://payments.example/base';
// prettier-ignore
const piece = fc.constantFrom(
  '/', '.', '..', '%2e', '%2E', '%2f', '%5c', '%00', '%', '\\', '@', ':', ';', '?', '#', 'a', 'v1', ' ',
  '//evil.example', '\n', '\t', 'ä', '\ud800', '\u2025', '\uff0e', '%252e',
);
const path = fc.oneof(
  fc.array(piece).map((pieces) => `/${pieces.join('')}`),
  fc.array(piece).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary' }),
  fc.webPath(),
);

/** Returns the segments that a server sees if it decodes the path before it resolves dots. */
function decodedSegments(pathname: string): string[] {
  return pathname
    .replace(/%2e/gi, '.')
    .replace(/%2f|%5c/gi, '/')
    .split('/');
}

describe('checkPath and callUrl', () => {
  it('checkPath accepts only paths that callUrl joins to the base URL without changing a byte', () => {
    holds(
      fc.property(path, (given) => {
        const error = errorOf(() => checkPath(given));
        if (error !== undefined) {
          expect(error).toBeInstanceOf(TypeError);
          return;
        }
        const url = new URL(callUrl(BASE, given));
        expect(url.href).toBe(BASE + given);
        expect([url.origin, url.pathname]).toEqual(['https://payments.example', `/base${given}`]);
        expect([url.search, url.hash, url.username]).toEqual(['', '', '']);
        expect(decodedSegments(url.pathname)).not.toContain('..');
      }),
    );
  });
});

describe('pathSegment', () => {
  const id = fc.oneof(
    fc.array(piece).map((pieces) => pieces.join('')),
    fc.string({ unit: 'binary' }),
    fc.uuid(),
  );

  it('pathSegment() encodes an id as one segment that decodes to the same id, or throws a TypeError', () => {
    holds(
      fc.property(id, (given) => {
        let segment: string;
        try {
          segment = pathSegment('id', given);
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
          return;
        }
        const path = `/v1/transactions/${segment}`;
        checkPath(path);
        const { pathname } = new URL(callUrl(BASE, path));
        expect(pathname.split('/')).toEqual(['', 'base', 'v1', 'transactions', segment]);
        expect(decodeURIComponent(segment)).toBe(given);
      }),
    );
  });

  it('pathSegment() returns every UUID unchanged', () => {
    holds(fc.property(fc.uuid(), (given) => expect(pathSegment('id', given)).toBe(given)));
  });
});

describe('queryString', () => {
  const value = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  );

  it('queryString() encodes names and values so that URLSearchParams decodes the same names and values', () => {
    const query = fc.dictionary(
      fc.string({ unit: 'grapheme' }),
      fc.oneof(value, fc.constant(undefined), fc.array(value)),
    );
    holds(
      fc.property(query, (given) => {
        const wanted = Object.entries(given).flatMap(([name, values]) =>
          [values].flat().flatMap((item) => (item === undefined ? [] : [[name, String(item)]])),
        );
        expect([...new URLSearchParams(queryString(given))]).toEqual(wanted);
        expect(new URL(callUrl(BASE, `/v1${queryString(given)}`)).pathname).toBe('/base/v1');
      }),
    );
  });
});
