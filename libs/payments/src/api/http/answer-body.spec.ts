import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { parseBody, readBody } from './answer-body.js';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('readBody', () => {
  it('destroys a stream that is longer than the limit', async () => {
    const stream = Readable.from([bytes('abc'), bytes('def'), bytes('ghi')]);
    const { bytes: read, whole, error } = await readBody(stream, 4);
    expect({ read: read.toString(), whole, error }).toEqual({
      read: 'abcd',
      whole: false,
      error: undefined,
    });
    expect(stream.destroyed).toBe(true);
  });

  it('returns the error of a stream that breaks', async () => {
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
  ])('parses %p of type %p to %p', (text, type, value) => {
    expect(parseBody(bytes(text), type)).toEqual(value);
  });
});
