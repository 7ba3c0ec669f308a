import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { BoundedBuffer, readInto } from './bounded-buffer.js';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('BoundedBuffer', () => {
  it('BoundedBuffer does not copy a body of one chunk', () => {
    const body = new BoundedBuffer(10);
    const chunk = bytes('one');
    expect(body.add(chunk)).toBe(true);
    expect(body.bytes.buffer).toBe(chunk.buffer);
    expect(body.bytes).toEqual(chunk);
    expect(body.capacity).toBe(3);
  });

  it('BoundedBuffer joins chunks of any size without changing them', () => {
    const chunks = Array.from({ length: 300 }, (_, n) => bytes('abcdefgh'.repeat(n % 7)));
    const copies = chunks.map((chunk) => Buffer.from(chunk));
    const body = new BoundedBuffer(1_000_000);
    for (const chunk of chunks) expect(body.add(chunk)).toBe(true);
    expect(body.bytes).toEqual(Buffer.concat(copies));
    expect(chunks).toEqual(copies);
    expect(body.whole).toBe(true);
  });

  it.each([[['0123456789']], [['01234', '5678', '9']], [['0', '123456789']]])(
    'BoundedBuffer accepts the chunks %p, which reach its limit, and drops all bytes after them',
    (chunks) => {
      const body = new BoundedBuffer(10);
      for (const chunk of chunks) expect(body.add(bytes(chunk))).toBe(true);
      expect(body.add(bytes('x'))).toBe(false);
      expect(body.add(bytes('y'))).toBe(false);
      expect(body.whole).toBe(false);
      expect(body.bytes.toString()).toBe('0123456789');
    },
  );

  it('HT-27 SE-01 a BoundedBuffer that is filled byte by byte allocates at most its limit and at most twice its content', () => {
    const body = new BoundedBuffer(50_000);
    const byte = bytes('x');
    // expect() is not called for each byte, because 60,000 calls take seconds.
    const lengthsOverLimit: number[] = [];
    for (let length = 1; length <= 60_000; length += 1) {
      body.add(byte);
      const allowed = Math.max(4096, Math.min(2 * length, 50_000));
      if (body.capacity > allowed) lengthsOverLimit.push(length);
    }
    expect(lengthsOverLimit).toEqual([]);
    expect(body.bytes.length).toBe(50_000);
    expect(body.bytes.buffer.byteLength).toBe(50_000);
  });
});

describe('BoundedBuffer.release', () => {
  it('release() frees the memory of the buffer at once', () => {
    const body = new BoundedBuffer(1_000_000);
    body.add(Buffer.alloc(10_000));
    body.add(Buffer.alloc(10_000));
    const { buffer } = body.bytes;
    expect(buffer.byteLength).toBeGreaterThanOrEqual(20_000);
    body.release();
    expect(buffer.byteLength).toBe(0);
    expect([body.bytes.length, body.capacity]).toEqual([0, 0]);
  });

  it('release() does not free the memory of a body of one chunk, because the memory belongs to the sender of the chunk', () => {
    const chunk = bytes('one');
    const body = new BoundedBuffer(10);
    body.add(chunk);
    body.release();
    expect(chunk.toString()).toBe('one');
    expect(body.bytes).toHaveLength(0);
  });
});

describe('readInto', () => {
  const read = async (stream: Readable, limit = 100): Promise<BoundedBuffer> => {
    const buffer = new BoundedBuffer(limit);
    await readInto(buffer, stream).ended;
    return buffer;
  };
  const listening = (stream: Readable): number =>
    ['data', 'end', 'close'].reduce((sum, name) => sum + stream.listenerCount(name), 0);

  it.each([
    [[bytes('a'), bytes('b')], 'ab'],
    [['→', '😀'], '→😀'],
    [[], ''],
  ])('readInto() reads all bytes of a stream of the chunks %j', async (chunks, text) => {
    expect((await read(Readable.from(chunks))).bytes).toEqual(bytes(text));
  });

  it('readInto() applies the limit to the bytes of a text, not to its characters', async () => {
    expect((await read(Readable.from(['→→']), 5)).whole).toBe(false);
    expect((await read(Readable.from(['→→']), 6)).whole).toBe(true);
  });

  it('readInto() reads a stream that has already ended as an empty body', async () => {
    const stream = Readable.from([]);
    await read(stream);
    expect((await read(stream)).bytes).toHaveLength(0);
  });

  it('readInto() rejects if the stream closes or was closed before its end', async () => {
    const stream = new PassThrough();
    const reading = read(stream);
    stream.write('a');
    stream.destroy();
    await expect(reading).rejects.toThrow('closed before its end');
    await expect(read(stream)).rejects.toThrow('closed before its end');
  });

  it('readInto() rejects with the error of the stream', async () => {
    const stream = new PassThrough();
    const reading = read(stream);
    stream.destroy(new Error('reset'));
    await expect(reading).rejects.toThrow('reset');
  });

  it('readInto() rejects with the error passed to stop(), and removes its listeners', async () => {
    const stream = new PassThrough();
    const before = listening(stream);
    const { ended, stop } = readInto(new BoundedBuffer(100), stream);
    expect(listening(stream)).toBe(before + 3);
    stop(new Error('too late'));
    await expect(ended).rejects.toThrow('too late');
    expect(listening(stream)).toBe(before);
  });

  it('readInto() resolves as soon as the limit is passed, drops later data and ignores a later error of the stream', async () => {
    const stream = new PassThrough();
    const buffer = new BoundedBuffer(3);
    const { ended } = readInto(buffer, stream);
    stream.write('four');
    await ended;
    expect(buffer.whole).toBe(false);
    for (let n = 0; n < 100; n += 1) stream.write(Buffer.alloc(16 * 1024));
    await new Promise((resolve) => setImmediate(resolve));
    expect(stream.readableLength + stream.writableLength).toBe(0);
    stream.destroy(new Error('late'));
    await new Promise((resolve) => stream.once('close', resolve));
  });

  it('readInto() calls onChunk after each chunk that was added, until stop()', async () => {
    const stream = new PassThrough();
    const buffer = new BoundedBuffer(3);
    const sizes: number[] = [];
    const reading = readInto(buffer, stream, () => {
      sizes.push(buffer.bytes.length);
      if (sizes.length === 2) reading.stop(new Error('enough'));
    });
    for (const text of ['a', 'b', 'c']) stream.write(text);
    await expect(reading.ended).rejects.toThrow('enough');
    expect(sizes).toEqual([1, 2]);
  });
});
