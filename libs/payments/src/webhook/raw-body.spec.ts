import { PassThrough, Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { codeOf } from '../../../../test/support/assertions.js';
import { turns } from '../../../../test/support/time/waiting.js';
import { PendingRequests } from './pending-requests.js';
import { ChunkCount, readRawBody, requireFittingLength, requirePlainJson } from './raw-body.js';
import { resolveWebhookOptions } from './webhook-options.js';

describe('readRawBody', () => {
  const options = resolveWebhookOptions(
    { bodyLimitBytes: 1024, maxPendingBytes: 1024 },
    { deadlineMs: 25_000 },
  );
  const requests = new PendingRequests(options, new FakeRuntime());
  const start = (stream: Readable, limit = 100) => {
    const pending = requests.add();
    return { pending, bytes: readRawBody(stream, limit, pending).finally(() => pending.release()) };
  };

  it('reads bytes in any number of chunks', async () => {
    const chunks = [Buffer.from('a'), Buffer.from('b')];
    expect(await start(Readable.from(chunks)).bytes).toEqual(Buffer.from('ab'));
  });

  it('rejects a body over the limit, and one that makes too many bytes pending', async () => {
    const over = [Buffer.alloc(60), Buffer.alloc(41)];
    const { bytes } = start(Readable.from(over));
    await expect(bytes).rejects.toMatchObject({ code: 'payload_too_large' });
    const full = start(Readable.from([Buffer.alloc(1025)]), 2000);
    await expect(full.bytes).rejects.toMatchObject({ code: 'webhook_busy' });
    expect(requests).toMatchObject({ count: 0, bytes: 0 });
  });

  it.each(['refuse', 'release'] as const)(
    'SE-03 leaves no body in memory that does not count as pending any more: %s',
    async (end) => {
      setFlagsFromString('--expose-gc');
      const collectGarbage = runInNewContext('gc') as () => void;
      // The application holds the request up, so it stays in memory.
      const pending = requests.add();
      const read = async () => {
        const bytes = await readRawBody(Readable.from([Buffer.alloc(10), 'more']), 100, pending);
        return new WeakRef(bytes.buffer);
      };
      const body = await read();
      await turns(1);
      pending[end](new Error('busy'));
      await turns(1);
      collectGarbage();
      expect(body.deref()).toBeUndefined();
      expect(requests.bytes).toBe(0);
      expect(pending.bytes).toBeGreaterThan(0);
    },
  );

  it('counts the bytes that it has allocated as pending', async () => {
    const stream = new PassThrough();
    const { pending, bytes } = start(stream, 1000);
    stream.write('a');
    expect(pending.bytes).toBe(1);
    stream.write('b');
    expect(pending.bytes).toBe(1000);
    stream.end();
    expect(await bytes).toHaveLength(2);
  });

  it('ends when the request is refused', async () => {
    const { pending, bytes } = start(new PassThrough());
    pending.refuse(new Error('too late'));
    await expect(bytes).rejects.toThrow('too late');
  });
});

describe('ChunkCount', () => {
  const accepted = (size: number): number => {
    const chunks = new ChunkCount();
    let count = 0;
    while (count < 100_000 && chunks.add(size)) count += 1;
    return count;
  };

  it('SE-01 a body of chunks of one byte is refused after about 4,096 of them', () => {
    expect(accepted(1)).toBeGreaterThanOrEqual(4096);
    expect(accepted(1)).toBeLessThan(4200);
  });

  it('WH-07 a body may have any number of chunks of 64 bytes', () => {
    expect(accepted(64)).toBe(100_000);
  });
});

describe('requireFittingLength', () => {
  it('WH-04 rejects a Content-Length over the limit', () => {
    for (const length of ['101', 101, [101]]) {
      const headers = { 'content-length': length } as never;
      expect(codeOf(() => requireFittingLength(headers, 100))).toBe('payload_too_large');
    }
    for (const length of ['100', undefined, 'x']) {
      const headers = { 'content-length': length } as never;
      expect(() => requireFittingLength(headers, 100)).not.toThrow();
    }
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
