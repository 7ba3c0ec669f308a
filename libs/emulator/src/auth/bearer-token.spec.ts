import { describe, expect, it } from '@jest/globals';
import { readBearerToken } from './bearer-token.js';

describe('readBearerToken', () => {
  it('readBearerToken() reads the token from Authorization or from x-auth-token', () => {
    expect(readBearerToken({ authorization: 'Bearer a.b.c' })).toBe('a.b.c');
    expect(readBearerToken({ 'x-auth-token': 'Bearer a.b.c' })).toBe('a.b.c');
  });

  it('readBearerToken() accepts both headers if they contain the same token', () => {
    const headers = { authorization: 'Bearer a.b.c', 'x-auth-token': 'bearer a.b.c' };
    expect(readBearerToken(headers)).toBe('a.b.c');
  });

  it.each([
    ['no header', {}],
    ['x-auth-token without its prefix', { 'x-auth-token': 'a.b.c' }],
    ['another scheme', { authorization: 'Basic abc' }],
    ['a prefix without a token', { authorization: 'Bearer ' }],
    ['two tokens in one header', { authorization: 'Bearer a, Bearer b' }],
    ['two headers that differ', { authorization: 'Bearer a', 'x-auth-token': 'Bearer b' }],
    ['one valid and one malformed header', { authorization: 'Bearer a', 'x-auth-token': 'a' }],
  ])('readBearerToken() returns no token for %s', (_, headers) => {
    expect(readBearerToken(headers)).toBeUndefined();
  });
});
