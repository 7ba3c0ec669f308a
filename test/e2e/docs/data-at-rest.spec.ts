import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { none } from 'nestjs-payments';
import type { BodyCodec, PaymentEvent, PaymentInbox } from 'nestjs-payments';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { MEMORY } from '../../support/inbox/expecting-application.js';
import type { ExpectingData } from '../../support/inbox/expecting-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import type { DurableInbox, InboxData } from '../../support/inbox/durable-inboxes.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

type AesBodyCodec = new (keys: string, options?: { acceptPlain?: boolean }) => BodyCodec;

const PHONE = '+254700900123';
const key = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;
const [OLD, NEW] = [key('2026-11'), key('2027-05')];

/** All stored bytes: of the files or of the tables. */
async function storedBytes(durable: DurableInbox, { child }: InboxData): Promise<Buffer> {
  const { where, schema } = child;
  if (durable.kind === 'sqlite') {
    const files = [where, `${where}-wal`, `${where}-shm`].filter((file) => existsSync(file));
    return Buffer.concat(files.map((file) => readFileSync(file)));
  }
  const query = <R>(text: string) => durable.server().query<R>(where, text);
  const events = await query<{ row: string; raw: Buffer }>(
    `SELECT t::text AS row, raw FROM ${schema}.event t`,
  );
  const deliveries = await query<{ row: string }>(
    `SELECT t::text AS row FROM ${schema}.delivery t`,
  );
  return Buffer.concat([
    ...[...events, ...deliveries].map(({ row }) => Buffer.from(row)),
    ...events.map(({ raw }) => raw),
  ]);
}

describe('docs/data-at-rest.md', () => {
  let program: ReadmeProgram;
  let Codec: AesBodyCodec;
  let oldBodies: (inbox: PaymentInbox, before: Date) => Promise<string[]>;
  beforeAll(async () => {
    program = new ReadmeProgram('docs/data-at-rest.md');
    const load = (file: string) => import(pathToFileURL(join(program.folder, file)).href);
    ({ AesBodyCodec: Codec } = (await load('aes-body-codec.js')) as { AesBodyCodec: AesBodyCodec });
    ({ oldBodies } = (await load('old-bodies.js')) as { oldBodies: typeof oldBodies });
  });
  afterAll(() => program.remove());

  it.each([
    ['an empty list of keys', ''],
    ['an id without a key', 'k1'],
    ['a key that is too short', 'k1:c2hvcnQ='],
    ['a key without an id', `:${OLD.split(':')[1]}`],
    ['two keys with the same id', `${OLD},${OLD}`],
  ])('SE-11 the codec of docs/data-at-rest.md rejects %s', (_what, keys) => {
    expect(() => new Codec(keys)).toThrow('Each body key must be "id:key"');
  });

  /** An application whose codec a test can replace while it runs, as a deployment does. */
  async function start(stored: ExpectingData, codec: BodyCodec | null, handle: Handle = () => {}) {
    const used = { codec };
    const bodyCodec: BodyCodec = {
      encode: (body, context) => used.codec?.encode(body, context) ?? body,
      decode: (bytes, context) => used.codec?.decode(bytes, context) ?? bytes,
    };
    const worker = { retry: none };
    const app = await startOn(stored, { book: handle }, { bodyCodec, worker });
    return { app, inbox: inboxOf(app), used, [Symbol.asyncDispose]: () => app.app.close() };
  }

  const tests = (data: () => Promise<ExpectingData>): void => {
    it('SE-11 the application reads bodies with a rotated key for as long as the key is configured', async () => {
      await using running = await start(await data(), new Codec(OLD));
      const { app, inbox, used } = running;
      const readable = async () =>
        Object.fromEntries(
          await Promise.all(
            ['evt_1', 'evt_2', 'evt_3'].map(async (id) => {
              const { raw, bodyError } = (await inbox.get(id))!;
              return [id, raw === null ? bodyError : JSON.parse(raw.toString()).id] as const;
            }),
          ),
        );
      await post(app, 'evt_1');
      used.codec = new Codec(`${OLD},${NEW}`);
      await post(app, 'evt_2');
      used.codec = new Codec(`${NEW},${OLD}`);
      await post(app, 'evt_3');
      expect(await readable()).toEqual({ evt_1: 'evt_1', evt_2: 'evt_2', evt_3: 'evt_3' });
      used.codec = new Codec(NEW);
      expect(await readable()).toEqual({
        evt_1: expect.stringContaining('there is no key "2026-11"'),
        evt_2: expect.stringContaining('there is no key "2026-11"'),
        evt_3: 'evt_3',
      });
    });

    it('SE-11 the application detects a body that was moved to another event, and does not handle that event', async () => {
      const handled: unknown[] = [];
      const codec = new Codec(OLD);
      const encoded: Uint8Array[] = [];
      // Moves the body as an attacker with access to the database could.
      const moving: BodyCodec = {
        encode: async (body, context) => {
          encoded.push(await codec.encode(body, context));
          return encoded.at(context.id === 'evt_large' ? 0 : -1)!;
        },
        decode: codec.decode.bind(codec),
      };
      await using running = await start(await data(), moving, ({ data }) => {
        handled.push(data['amount']);
      });
      const { app, inbox } = running;
      await post(app, 'evt_small', { amount: 1 });
      await post(app, 'evt_large', { amount: 1000 });
      await eventually(async () =>
        expect(await states(app, 'evt_large')).toEqual({ book: 'dead 1' }),
      );
      await eventually(() => expect(handled).toEqual([1]));
      const { raw, bodyError, deliveries } = (await inbox.get('evt_large'))!;
      expect(raw).toBeNull();
      expect(bodyError).toContain('(body_undecodable)');
      expect(deliveries[0]!.lastError).toContain('event evt_large (company default)');
    });

    it('SE-11 after a redrive with the key, the application handles an event whose key was missing', async () => {
      const seen: string[] = [];
      await using running = await start(await data(), new Codec(OLD), ({ id }) => {
        seen.push(id);
      });
      const { app, inbox, used } = running;
      const decode = new Codec(NEW);
      const encode = new Codec(OLD);
      used.codec = { encode: encode.encode.bind(encode), decode: decode.decode.bind(decode) };
      await post(app, 'evt_paid');
      await eventually(async () =>
        expect(await states(app, 'evt_paid')).toEqual({ book: 'dead 1' }),
      );
      expect(seen).toEqual([]);
      const soon = new Date(Date.now() + 60_000);
      expect(await oldBodies(inbox, soon)).toEqual(['evt_paid']);
      used.codec = new Codec(`${NEW},${OLD}`);
      await inbox.redrive({ ids: ['evt_paid'] });
      await eventually(async () =>
        expect(await states(app, 'evt_paid')).toEqual({ book: 'done 1' }),
      );
      expect(seen).toEqual(['evt_paid']);
      expect(await oldBodies(inbox, soon)).toEqual([]);
    });

    it('SE-11 the application reads unencrypted stored bodies with acceptPlain, and rejects these bodies without acceptPlain', async () => {
      await using running = await start(await data(), null);
      const { app, inbox, used } = running;
      await post(app, 'evt_plain');
      used.codec = new Codec(OLD, { acceptPlain: true });
      await post(app, 'evt_encrypted');
      for (const id of ['evt_plain', 'evt_encrypted']) {
        expect(JSON.parse((await inbox.get(id))!.raw!.toString())).toMatchObject({ id });
      }
      used.codec = new Codec(OLD);
      expect((await inbox.get('evt_plain'))!.bodyError).toContain('the body is not encrypted');
      expect((await inbox.get('evt_encrypted'))!.raw).not.toBeNull();
    });
  };

  onEachDurableInbox((durable) => {
    it('SE-11 the application stores no body in plain text, and handlers and get() return the body as it was signed', async () => {
      const stored = await durable.data();
      const seen: { event: PaymentEvent; raw: Buffer }[] = [];
      await using running = await start(stored, new Codec(OLD), (event, { raw }) => {
        seen.push({ event, raw });
      });
      const { app, inbox } = running;
      const sent = webhookRequest({
        id: 'evt_paid',
        data: { transactionId: 'tx_1', phone: PHONE },
      });
      expect((await app.send(sent)).status).toBe(200);
      await eventually(async () =>
        expect(await states(app, 'evt_paid')).toEqual({ book: 'done 1' }),
      );
      expect(seen[0]!.event.data).toMatchObject({ phone: PHONE });
      expect(seen[0]!.raw.equals(sent.body)).toBe(true);
      expect((await inbox.get('evt_paid'))!.raw!.equals(sent.body)).toBe(true);
      const bytes = await storedBytes(durable, stored);
      // The guide says that these values stay in plain text. The test finds these values, which proves that the search
      // itself works.
      for (const plain of ['evt_paid', 'tx_1', 'application/json', '2026-11']) {
        expect(bytes.includes(plain)).toBe(true);
      }
      for (const secret of [PHONE, 'phone', 'metadata']) expect(bytes.includes(secret)).toBe(false);
    });

    tests(() => durable.data());
  });
  describe('on memory', () => tests(async () => MEMORY));
});
