import { PassThrough, Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { turns } from '../../../../test/support/time/waiting.js';
import { ChunkCount, PendingRequests, readRawBody } from './admission.js';
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

  it('readRawBody() joins the chunks of a body', async () => {
    const chunks = [Buffer.from('a'), Buffer.from('b')];
    expect(await start(Readable.from(chunks)).bytes).toEqual(Buffer.from('ab'));
  });

  it('readRawBody() rejects a body over its limit, and a body over the limit of all pending requests', async () => {
    const over = [Buffer.alloc(60), Buffer.alloc(41)];
    const { bytes } = start(Readable.from(over));
    await expect(bytes).rejects.toMatchObject({ code: 'payload_too_large' });
    const full = start(Readable.from([Buffer.alloc(1025)]), 2000);
    await expect(full.bytes).rejects.toMatchObject({ code: 'webhook_busy' });
    expect(requests).toMatchObject({ count: 0, bytes: 0 });
  });

  it.each(['reject', 'release'] as const)(
    'SE-03 readRawBody() keeps no body in memory after %s() of its pending request',
    async (end) => {
      setFlagsFromString('--expose-gc');
      const collectGarbage = runInNewContext('gc') as () => void;
      // The application keeps the request, so it stays in memory.
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

  it('readRawBody() counts allocated bytes, not received bytes, as pending', async () => {
    const stream = new PassThrough();
    const { pending, bytes } = start(stream, 1000);
    stream.write('a');
    expect(pending.bytes).toBe(1);
    stream.write('b');
    expect(pending.bytes).toBe(1000);
    stream.end();
    expect(await bytes).toHaveLength(2);
  });

  it('readRawBody() stops reading when the pending request is rejected', async () => {
    const { pending, bytes } = start(new PassThrough());
    pending.reject(new Error('too late'));
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

  it('SE-01 ChunkCount rejects a body of one-byte chunks after about 4,096 chunks', () => {
    expect(accepted(1)).toBeGreaterThanOrEqual(4096);
    expect(accepted(1)).toBeLessThan(4200);
  });

  it('WH-07 ChunkCount accepts a body with any number of 64-byte chunks', () => {
    expect(accepted(64)).toBe(100_000);
  });
});
