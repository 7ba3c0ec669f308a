import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../../test/support/log/captured-log.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { resolveBodyCodec, StoredBodies } from './body-codec.js';
import type { BodyCodec } from './body-codec.js';
import type { StoredEvent } from './inbox-store.js';

const CONTEXT = { company: 'acme', id: 'evt_1' };
const BODY = Buffer.from('{"phone":"+254700900123"}');

/** Returns different bytes each time, as encryption does, in a view of a larger buffer, as Node.js pools buffers. */
const codec: BodyCodec = {
  encode: (body) => Buffer.concat([Buffer.from([1, Math.random() * 256]), body, Buffer.of(9)]),
  decode: async (stored) => {
    if (stored[0] !== 1) throw new Error('wrong key');
    return new Uint8Array(stored.buffer, stored.byteOffset + 2, stored.length - 3);
  },
};

const event = (raw: Buffer | null): StoredEvent => ({ ...CONTEXT, raw }) as StoredEvent;
const bodies = (used: BodyCodec | null, runtime = new FakeRuntime()) =>
  new StoredBodies(used, runtime);

describe('stored bodies', () => {
  it('SE-11 without a codec, bodies are stored and read unchanged', async () => {
    expect(await bodies(null).encode(BODY, CONTEXT)).toBe(BODY);
    expect(await bodies(null).decode(BODY, CONTEXT)).toBe(BODY);
  });

  it('SE-11 bodies are encoded and decoded with the company and the event id as context', async () => {
    const contexts: unknown[] = [];
    const used = bodies({
      encode: (body, context) => (contexts.push(context), codec.encode(body, context)),
      decode: (stored, context) => (contexts.push(context), codec.decode(stored, context)),
    });
    const stored = await used.encode(BODY, { ...CONTEXT, handler: 'book' } as never);
    expect(stored.includes(BODY)).toBe(true);
    expect((await used.decode(stored, event(stored))).equals(BODY)).toBe(true);
    expect(contexts).toEqual([CONTEXT, CONTEXT]);
  });

  it('SE-11 a body that cannot be encoded is rejected, and logged at most once per minute', async () => {
    const log = new CapturedLog();
    Logger.overrideLogger(log);
    const runtime = new FakeRuntime();
    const used = bodies(
      {
        ...codec,
        encode: () => {
          throw new Error('key service is down');
        },
      },
      runtime,
    );
    const rejection = { code: 'inbox_unavailable', message: expect.not.stringContaining('key') };
    for (let count = 0; count < 20; count += 1) {
      await expect(used.encode(BODY, CONTEXT)).rejects.toMatchObject(rejection);
    }
    expect(log.lines).toEqual([
      expect.stringMatching(/event evt_1 \(company acme\).*503.*key service is down/),
    ]);
    runtime.advance(60_000);
    expect(log.lines[1]).toContain('18 more');
    expect(log.lines.join('')).not.toContain('2547');
  });

  it('SE-11 if a body cannot be decoded, the error names the event, the cause and the fix, and contains no bytes of the body', async () => {
    const used = bodies(codec);
    const stored = Buffer.from([2, ...BODY]);
    const error = await used.decode(stored, CONTEXT).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'body_undecodable',
      message: expect.stringMatching(/event evt_1 \(company acme\).*configure the key/),
      cause: expect.objectContaining({ message: 'wrong key' }),
    });
    const shown = await used.show(event(stored));
    expect(shown).toMatchObject({ raw: null, bodyError: expect.stringContaining('wrong key') });
    expect(JSON.stringify(shown) + String(error)).not.toContain('2547');
  });

  it.each([undefined, null, 'text', [1, 2]])(
    'SE-11 a codec that returns %j instead of bytes fails',
    async (it) => {
      const used = bodies({ encode: () => it as never, decode: () => it as never });
      await expect(used.encode(BODY, CONTEXT)).rejects.toMatchObject({ code: 'inbox_unavailable' });
      const { bodyError } = (await used.show(event(BODY)))!;
      expect(bodyError).toContain('bodyCodec.decode() returned no Uint8Array');
    },
  );

  it('SE-11 with a codec, decoded bodies are compared, and only a different body is a conflict', async () => {
    const used = bodies(codec);
    const stored = await used.encode(BODY, CONTEXT);
    const conflict = (body: Buffer, first: StoredEvent | undefined) =>
      used.conflicts(body, async () => first);
    expect(await conflict(BODY, event(stored))).toBe(false);
    expect(await conflict(Buffer.from('another'), event(stored))).toBe(true);
    // The first body was pruned, cannot be decoded, or was deleted with its event.
    expect(await conflict(BODY, event(null))).toBe(false);
    expect(await conflict(BODY, event(Buffer.of(2)))).toBe(false);
    expect(await conflict(BODY, undefined)).toBe(false);
    // Without a codec, the store has compared the bodies correctly.
    expect(await bodies(null).conflicts(BODY, async () => event(BODY))).toBe(true);
  });
});

describe('the option bodyCodec', () => {
  const method = () => BODY;

  it.each([null, {}, { encode: method }, { decode: method }, 'aes', method])(
    'SE-11 bodyCodec rejects %p, which lacks encode or decode',
    (option) => {
      expect(() => resolveBodyCodec(option as never)).toThrow(
        expect.objectContaining({
          code: 'options_invalid',
          message: expect.stringContaining('"bodyCodec"'),
        }),
      );
    },
  );

  it('SE-11 the functions of bodyCodec are called as methods of their object, and other fields of the object are not copied', () => {
    class Keyed implements BodyCodec {
      readonly key = Buffer.from('k3y');

      encode(): Buffer {
        return this.key;
      }
      decode(): Buffer {
        return this.key;
      }
    }
    const keyed = new Keyed();
    const resolved = resolveBodyCodec(keyed)!;
    expect(resolved.encode(BODY, CONTEXT)).toBe(keyed.key);
    expect(resolved.decode(BODY, CONTEXT)).toBe(keyed.key);
    expect(Object.keys(resolved)).toEqual(['encode', 'decode']);
  });
});
