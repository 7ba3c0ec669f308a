import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { CappedBody, parseBody, readCapped } from './body.js';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('CappedBody', () => {
  it('does not copy a body of one chunk', () => {
    const body = new CappedBody(10);
    const chunk = bytes('one');
    expect(body.add(chunk)).toBe(true);
    expect(body.bytes.buffer).toBe(chunk.buffer);
    expect(body.bytes).toEqual(chunk);
  });

  it('joins chunks of any size without changing them', () => {
    const chunks = Array.from({ length: 300 }, (_, n) => bytes('abcdefgh'.repeat(n % 7)));
    const copies = chunks.map((chunk) => Buffer.from(chunk));
    const body = new CappedBody(1_000_000);
    for (const chunk of chunks) expect(body.add(chunk)).toBe(true);
    expect(body.bytes).toEqual(Buffer.concat(copies));
    expect(chunks).toEqual(copies);
    expect(body.whole).toBe(true);
  });

  it.each([[['0123456789']], [['01234', '5678', '9']], [['0', '123456789']]])(
    'is whole up to its limit, and cut after it: %p',
    (chunks) => {
      const body = new CappedBody(10);
      for (const chunk of chunks) expect(body.add(bytes(chunk))).toBe(true);
      expect(body.add(bytes('x'))).toBe(false);
      expect(body.add(bytes('y'))).toBe(false);
      expect(body.whole).toBe(false);
      expect(body.bytes.toString()).toBe('0123456789');
    },
  );

  it('HT-27 allocates at most its limit', () => {
    const body = new CappedBody(5_000);
    for (let n = 0; n < 6_000; n += 1) body.add(bytes('x'));
    expect(body.bytes.length).toBe(5_000);
    expect(body.bytes.buffer.byteLength).toBeLessThanOrEqual(Math.max(5_000, Buffer.poolSize));
  });
});

describe('readCapped', () => {
  it('destroys a stream that is longer than the limit', async () => {
    const stream = Readable.from([bytes('abc'), bytes('def'), bytes('ghi')]);
    const { bytes: read, whole, error } = await readCapped(stream, 4);
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
    expect(await readCapped(stream, 10)).toMatchObject({ whole: true, error: broken });
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
