import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { codeOf } from '../../../../test/support/thrown.error.js';
import { readRawBody, requirePlainJson } from './raw-body.js';

const read = async (stream: Readable, limit = 100) => readRawBody(stream, {}, limit).bytes;

describe('readRawBody', () => {
  it('reads bytes in any number of chunks, and a stream of text as its UTF-8', async () => {
    expect(await read(Readable.from([Buffer.from('a'), Buffer.from('b')]))).toEqual(
      Buffer.from('ab'),
    );
    expect(await read(Readable.from(['→', '😀']))).toEqual(Buffer.from('→😀'));
    expect(await read(Readable.from([]))).toEqual(Buffer.alloc(0));
  });

  it('counts bytes, not characters', async () => {
    await expect(read(Readable.from(['→→']), 5)).rejects.toMatchObject({
      code: 'payload_too_large',
    });
    expect(await read(Readable.from(['→→']), 6)).toHaveLength(6);
  });

  it('ends where the stream is closed without a word, or was before', async () => {
    const stream = new PassThrough();
    const reading = read(stream);
    stream.write('a');
    stream.destroy();
    await expect(reading).rejects.toThrow('closed the connection');
    await expect(read(stream)).rejects.toThrow('closed the connection');
  });

  it('fails with what the stream fails with', async () => {
    const stream = new PassThrough();
    const reading = read(stream);
    stream.destroy(new Error('reset'));
    await expect(reading).rejects.toThrow('reset');
  });

  it('ends with what it is ended with, and leaves no listener behind', async () => {
    const stream = new PassThrough();
    const listening = (): number =>
      ['data', 'end', 'close'].reduce((sum, name) => sum + stream.listenerCount(name), 0);
    const before = listening();
    const { bytes, end } = readRawBody(stream, {}, 100);
    expect(listening()).toBe(before + 3);
    end(new Error('too late'));
    await expect(bytes).rejects.toThrow('too late');
    expect(listening()).toBe(before);
  });

  it('has no failure of the stream be anybody else’s, once it has ended early', async () => {
    const stream = new PassThrough();
    const { bytes } = readRawBody(stream, {}, 3);
    stream.write('four');
    await expect(bytes).rejects.toMatchObject({ code: 'payload_too_large' });
    stream.destroy(new Error('late'));
    await new Promise((resolve) => stream.once('close', resolve));
  });

  it('reads nothing of a body that says that it is too large', async () => {
    const stream = new PassThrough();
    const { bytes } = readRawBody(stream, { 'content-length': '101' }, 100);
    await expect(bytes).rejects.toMatchObject({ code: 'payload_too_large' });
    expect(stream.readableDidRead).toBe(false);
  });
});

describe('requirePlainJson', () => {
  const json = 'application/json';

  it.each([
    { 'content-type': json },
    { 'content-type': 'Application/JSON; charset=utf-8' },
    { 'content-type': [json, json] },
    { 'content-type': json, 'content-encoding': 'Identity' },
    { 'content-type': json, 'content-encoding': ['identity', 'identity'] },
    { 'content-type': json, 'content-encoding': '' },
    { 'content-type': json, 'content-encoding': null },
    { 'content-type': json, 'content-encoding': {} },
  ])('WH-30 accepts %j', (headers) => {
    expect(() => requirePlainJson(headers as never)).not.toThrow();
  });

  it.each([
    [{}, 'content_type_unsupported'],
    [{ 'content-type': 7 }, 'content_type_unsupported'],
    [{ 'content-type': ['text/plain', json] }, 'content_type_unsupported'],
    [{ 'content-type': json, 'content-encoding': 'gzip' }, 'content_encoding_unsupported'],
    [
      { 'content-type': json, 'content-encoding': ['identity', 'gzip'] },
      'content_encoding_unsupported',
    ],
    [{ 'content-type': json, 'content-encoding': 1 }, 'content_encoding_unsupported'],
  ])('WH-05 rejects %j as %s', (headers, code) => {
    expect(codeOf(() => requirePlainJson(headers as never))).toBe(code);
  });
});
