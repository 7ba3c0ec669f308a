import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { parseBody, parseRetryAfterMs, readBody } from './http-exchange.js';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('readBody', () => {
  it('readBody() keeps the bytes up to the limit and destroys a stream that is longer', async () => {
    const stream = Readable.from([bytes('abc'), bytes('def'), bytes('ghi')]);
    const { bytes: read, whole, error } = await readBody(stream, 4);
    expect({ read: read.toString(), whole, error }).toEqual({
      read: 'abcd',
      whole: false,
      error: undefined,
    });
    expect(stream.destroyed).toBe(true);
  });

  it('readBody() returns the error of a stream that fails', async () => {
    const broken = new Error('broken');
    const stream = new Readable({ read: () => {} });
    stream.push(bytes('abc'));
    setImmediate(() => stream.destroy(broken));
    expect(await readBody(stream, 10)).toMatchObject({ whole: true, error: broken });
  });
});

describe('parseBody', () => {
  it.each([
    ['', 'application/json', undefined],
    ['{"a":1}', undefined, { a: 1 }],
    ['42', 'text/plain', '42'],
    ['42', 'application/json; charset=utf-8', 42],
    ['{"a":', 'application/json', '{"a":'],
  ])('parseBody() of the text %p with the content type %p returns %p', (text, type, value) => {
    expect(parseBody(bytes(text), type)).toEqual(value);
  });
});

const NOW = Date.UTC(2026, 0, 1, 12);

describe('parseRetryAfterMs', () => {
  it.each([
    ['0', 0],
    [' 120 ', 120_000],
    ['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
    ['Thursday, 01-Jan-26 12:00:30 GMT', 30_000],
    ['Thu, 01 Jan 2026 11:00:00 GMT', 0],
  ])('parseRetryAfterMs() reads %p as %p ms', (header, ms) => {
    expect(parseRetryAfterMs(header, NOW)).toBe(ms);
  });

  it.each([undefined, '', '-5', '1.5', '1e3', '2026-01-01', 'soon', '9'.repeat(30)])(
    'parseRetryAfterMs() returns undefined for %p',
    (header) => {
      expect(parseRetryAfterMs(header, NOW)).toBeUndefined();
    },
  );
});
