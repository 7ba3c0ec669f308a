import { describe, expect, it } from '@jest/globals';
import { readBearerToken } from './bearer.header.js';

describe('readBearerToken', () => {
  it('takes the token from either header', () => {
    expect(readBearerToken({ authorization: 'Bearer a.b.c' })).toBe('a.b.c');
    expect(readBearerToken({ 'x-auth-token': 'Bearer a.b.c' })).toBe('a.b.c');
  });

  it('takes both headers with the same token', () => {
    const headers = { authorization: 'Bearer a.b.c', 'x-auth-token': 'bearer a.b.c' };
    expect(readBearerToken(headers)).toBe('a.b.c');
  });

  it.each([
    ['no header', {}],
    ['x-auth-token without its prefix', { 'x-auth-token': 'a.b.c' }],
    ['another scheme', { authorization: 'Basic abc' }],
    ['a prefix alone', { authorization: 'Bearer ' }],
    ['two tokens in one header', { authorization: 'Bearer a, Bearer b' }],
    ['two headers that differ', { authorization: 'Bearer a', 'x-auth-token': 'Bearer b' }],
    ['one good header and one bad', { authorization: 'Bearer a', 'x-auth-token': 'a' }],
  ])('finds no token in %s', (_, headers) => {
    expect(readBearerToken(headers)).toBeUndefined();
  });
});
