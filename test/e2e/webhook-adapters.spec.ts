import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../support/time/fake-runtime.js';
import { timersAtRest } from '../support/time/waiting.js';
import { signedDelivery } from '../support/webhook/signed-delivery.js';
import type { SignedDelivery } from '../support/webhook/signed-delivery.js';
import { sendSynthetic } from '../support/http/synthetic-request.js';
import type { SyntheticRequest } from '../support/http/synthetic-request.js';
import {
  ADAPTERS,
  SECRET,
  STAGES,
  WebhookApplication,
  BODY_OPTIONS,
  Orders,
} from '../support/webhook/webhook-application.js';

/** A delivery as an adapter gives it, with lower-case header names. */
function synthetic({ path, headers, body }: SignedDelivery): SyntheticRequest {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { path, headers: Object.fromEntries(lower) as Record<string, string>, body };
}

/** The fields of a request whose stream something else has read. */
const READ = { readableDidRead: true };

const LENGTH = signedDelivery({ webhookSecret: SECRET }, { id: randomUUID() }).body.byteLength;

/** Values that no HTTP parser sets, and adapters do. */
const ODD_VALUES: readonly (readonly [string, unknown])[] = [
  ['a number', LENGTH],
  ['0', 0],
  ['NaN', NaN],
  ['a bigint', BigInt(LENGTH)],
  ['a boolean', true],
  ['undefined', undefined],
  ['null', null],
  ['an empty text', ''],
  ['an empty array', []],
  ['an array of texts', ['1', '2']],
  ['an array of oddities', [1, undefined, null, {}, ['x']]],
  ['an object', { a: 1 }],
  ['an object without a prototype', Object.create(null)],
  ['a function', () => 'x'],
  ['a symbol', Symbol('x')],
  ['half a character', 'a\ud800'],
  ['control characters', 'a\0\r\nb'],
  ['10,000 characters', 'é'.repeat(10_000)],
];
/** Headers that are read on the way, and prove nothing. */
const OPTIONAL = ['content-length', 'user-agent', 'x-webhook-event', 'x-request-id', 'traceparent'];

describe.each(STAGES)('requests of serverless adapters on $adapter with $option', (stage) => {
  const runtime = new FakeRuntime();
  let app: WebhookApplication;
  let orders: Orders;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[stage.adapter]!(),
      nest: BODY_OPTIONS[stage.option]!,
      payments: { runtime },
      providers: [Orders],
    });
    orders = app.app.get(Orders);
  });
  beforeEach(() => void (app.log.lines.length = 0));
  afterAll(async () => app.app.close());

  const id = (): string => randomUUID();
  const expectHandled = async (
    change: (request: SyntheticRequest, delivery: SignedDelivery) => SyntheticRequest,
  ): Promise<void> => {
    const sent = id();
    const delivery = signedDelivery({ webhookSecret: SECRET }, { id: sent });
    expect(await sendSynthetic(app.app, change(synthetic(delivery), delivery))).toMatchObject({
      status: 200,
      body: { status: 'handled', id: sent },
    });
    expect(orders.count(sent)).toBe(1);
    expect(orders.seen.at(-1)!.context.raw.equals(delivery.body)).toBe(true);
  };

  describe.each(OPTIONAL)('WH-30 the header %s', (name) => {
    it.each(ODD_VALUES)('does not refuse a verified delivery if it is %s', async (_what, value) => {
      await expectHandled((request) => ({
        ...request,
        headers: { ...request.headers, [name]: value },
      }));
    });
  });

  it.each([
    ['signature is an array', { 'x-webhook-signature': (value: string) => ['sha512=no', value] }],
    ['content type is an array', { 'content-type': (value: string) => [value, value] }],
    ['content encoding is an array', { 'content-encoding': () => ['identity'] }],
    ['content encoding is null', { 'content-encoding': () => null }],
  ])('WH-30 a delivery whose %s is verified', async (_what, changes) => {
    const [[name, change]] = Object.entries(changes) as [[string, (value: string) => unknown]];
    await expectHandled((request) => ({
      ...request,
      headers: { ...request.headers, [name]: change(String(request.headers[name])) },
    }));
  });

  it.each([
    ['no socket', { socket: undefined }],
    ['an empty socket', { socket: {} }],
    ['a socket that can be read', { socket: { readable: true } }],
  ] as [string, Partial<SyntheticRequest>][])(
    'WH-30 a delivery with %s is verified',
    async (_what, fields) => {
      await expectHandled((request) => ({ ...request, ...fields }));
    },
  );

  it.each([
    ['a Buffer as rawBody', (body: Buffer) => ({ rawBody: body, body: { parsed: true } })],
    ['a Uint8Array as rawBody', (body: Buffer) => ({ rawBody: new Uint8Array(body) })],
    ['a text as rawBody', (body: Buffer) => ({ rawBody: body.toString() })],
    ['a Buffer as body', (body: Buffer) => ({ body })],
    ['a text as body', (body: Buffer) => ({ body: body.toString() })],
  ])(
    'WH-30 a delivery whose stream was read before and left %s is verified',
    async (_what, left) => {
      await expectHandled((request, delivery) => ({
        ...request,
        fields: { ...left(delivery.body), ...READ },
      }));
    },
  );

  it('WH-30 a request that is not a stream is verified by the bytes it contains', async () => {
    await expectHandled((request, { body }) => ({ ...request, fields: { body, on: undefined } }));
  });

  it('WH-02 a forged delivery from an adapter gets 401, as does one without a signature', async () => {
    const { path, headers, body } = synthetic(signedDelivery({ webhookSecret: 'another' }));
    const forged = { path, headers: { ...headers, 'content-length': body.byteLength }, body };
    for (const socket of [undefined, {}, { readable: true }]) {
      const answer = await sendSynthetic(app.app, { ...forged, socket });
      expect(answer).toMatchObject({ status: 401, body: { code: 'signature_mismatch' } });
    }
    for (const none of [undefined, null, 7, [], {}]) {
      const unsigned = { ...forged, headers: { ...headers, 'x-webhook-signature': none } };
      expect((await sendSynthetic(app.app, unsigned)).status).toBe(401);
    }
  });

  it.each([
    ['stream', (body: Buffer) => ({ body, fields: {} })],
    ['rawBody', (body: Buffer) => ({ body: Buffer.of(), fields: { rawBody: body, ...READ } })],
    ['body', (body: Buffer) => ({ body: Buffer.of(), fields: { body: body.toString(), ...READ } })],
  ])(
    'WH-04 WH-30 a %s over the limit gets 413, without a socket to close',
    async (_from, carried) => {
      const idle = await timersAtRest(runtime);
      const pad = 'x'.repeat(1024 ** 2);
      const { path, headers, body } = synthetic(
        signedDelivery({ webhookSecret: SECRET }, { metadata: { pad } }),
      );
      for (const length of [undefined, body.byteLength]) {
        for (const socket of [undefined, {}]) {
          const sized = { ...headers, 'content-length': length };
          const request = { path, headers: sized, socket, ...carried(Buffer.from(body)) };
          expect(await sendSynthetic(app.app, request)).toMatchObject({
            status: 413,
            body: { code: 'payload_too_large' },
          });
        }
      }
      expect(await timersAtRest(runtime)).toBe(idle);
    },
  );
});
