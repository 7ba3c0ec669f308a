import { describe, expect, it } from '@jest/globals';
import { resolveApiOptions } from './api-options.js';
import { prepareCall, type CallRequest } from './call-request.js';
import type { ApiMethod, RequestOptions } from './payments-api.js';

const prepare = (
  options: RequestOptions,
  method: ApiMethod = 'POST',
  api = resolveApiOptions(),
): CallRequest => prepareCall({ method, path: '/v1/things', options, expect: 'anything' }, api);

describe('prepareCall', () => {
  it.each([
    'Authorization',
    'x-auth-token',
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Content-Type',
    'Proxy-Authorization',
    'User-Agent',
    'Accept-Encoding',
  ])('prepareCall() rejects the header %s, which only the module may set', (name) => {
    expect(() => prepare({ headers: { [name]: 'x' } })).toThrow(TypeError);
  });

  it.each([
    ['a line break', { 'x-a': 'a\r\nb' }],
    ['an invalid name', { 'a b': 'x' }],
    ['a value that is not a string', { 'x-a': 1 as never }],
    ['characters that a header cannot contain', { 'x-a': '→' }],
  ])('prepareCall() rejects a header with %s', (_, headers) => {
    expect(() => prepare({ headers })).toThrow(TypeError);
  });

  it('prepareCall() includes the headers of the call, and a given accept header replaces the default accept header', () => {
    expect(prepare({ headers: { 'X-A': 'b', Accept: 'text/csv' } }).headers).toEqual({
      'x-a': 'b',
      accept: 'text/csv',
      'user-agent': 'nestjs-payments',
    });
  });

  it('prepareCall() encodes the body as JSON, including the bodies null and false', () => {
    expect(String(prepare({ body: { a: 'ü' } }).body)).toBe('{"a":"ü"}');
    expect(String(prepare({ body: null }).body)).toBe('null');
    expect(String(prepare({ body: false }).body)).toBe('false');
    expect(prepare({}).body).toBeUndefined();
  });

  it('prepareCall() rejects a body that JSON cannot represent, a body of a GET and an unknown method', () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    for (const body of [circle, 1n, () => {}, Symbol('s')]) {
      expect(() => prepare({ body })).toThrow(TypeError);
    }
    expect(() => prepare({ body: {} }, 'GET')).toThrow(TypeError);
    expect(() => prepare({}, 'TRACE' as ApiMethod)).toThrow(TypeError);
    expect(() => prepare({}, 'get' as ApiMethod)).toThrow(TypeError);
  });

  it('prepareCall() rejects a deadline out of bounds, and a signal that is not an AbortSignal', () => {
    for (const deadlineMs of [0, -1, NaN, Infinity, 600_001]) {
      expect(() => prepare({ deadlineMs })).toThrow(TypeError);
    }
    expect(prepare({ deadlineMs: 5 }).deadlineMs).toBe(5);
    expect(prepare({}).deadlineMs).toBe(20_000);
    expect(() => prepare({ signal: {} as AbortSignal })).toThrow(TypeError);
  });
});
