import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { timersAtRest } from '../../support/time/waiting.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import type { SignedWebhook } from '../../support/webhook/signed-webhook.js';
import { sendSynthetic } from '../../support/http/synthetic-request.js';
import type { SyntheticRequest } from '../../support/http/synthetic-request.js';
import {
  ADAPTERS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
  BODY_OPTIONS,
  Orders,
} from '../../support/webhook/webhook-application.js';

/** The webhook request as a serverless adapter creates it, with lower-case header names. */
function synthetic({ path, headers, body }: SignedWebhook): SyntheticRequest {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { path, headers: Object.fromEntries(lower) as Record<string, string>, body };
}

/** The fields of a request whose stream other code has read. */
const READ = { readableDidRead: true };

const LENGTH = signedWebhook({ webhookSecret: SECRET }, { id: randomUUID() }).body.byteLength;

/** Header values that an HTTP parser never sets, but a serverless adapter may. */
const ODD_VALUES: readonly (readonly [string, unknown])[] = [
  ['a number', LENGTH],
  ['undefined', undefined],
  ['null', null],
  ['an array of oddities', [1, undefined, null, {}, ['x']]],
  ['an object without a prototype', Object.create(null)],
  ['a symbol', Symbol('x')],
  ['half a character', 'a\ud800'],
  ['control characters', 'a\0\r\nb'],
];
/** Headers that the module reads, but does not need. */
const OPTIONAL = ['content-length', 'user-agent', 'x-webhook-event', 'x-request-id', 'traceparent'];

describe.each(ADAPTER_OPTIONS)(
  'requests of serverless adapters on $adapter with $option',
  (server) => {
    const runtime = new FakeRuntime();
    let app: WebhookApplication;
    let orders: Orders;
    beforeAll(async () => {
      app = await WebhookApplication.start({
        adapter: ADAPTERS[server.adapter]!(),
        nest: BODY_OPTIONS[server.option]!,
        payments: { runtime },
        providers: [Orders],
      });
      orders = app.app.get(Orders);
    });
    beforeEach(() => void (app.log.lines.length = 0));
    afterAll(async () => app.app.close());

    const id = (): string => randomUUID();
    const expectHandled = async (
      change: (request: SyntheticRequest, signed: SignedWebhook) => SyntheticRequest,
    ): Promise<void> => {
      const sent = id();
      const signed = signedWebhook({ webhookSecret: SECRET }, { id: sent });
      expect(await sendSynthetic(app.app, change(synthetic(signed), signed))).toMatchObject({
        status: 200,
        body: { status: 'handled', id: sent },
      });
      expect(orders.count(sent)).toBe(1);
      expect(orders.seen.at(-1)!.context.raw.equals(signed.body)).toBe(true);
    };

    it.each([
      ['signature is an array', { 'x-webhook-signature': (value: string) => ['sha512=no', value] }],
      ['content type is an array', { 'content-type': (value: string) => [value, value] }],
      ['content encoding is an array', { 'content-encoding': () => ['identity'] }],
      ['content encoding is null', { 'content-encoding': () => null }],
    ])('WH-30 the module verifies a webhook request whose %s', async (_what, changes) => {
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
      'WH-30 the module verifies a webhook request with %s',
      async (_what, fields) => {
        await expectHandled((request) => ({ ...request, ...fields }));
      },
    );

    it.each([
      ['a Buffer in rawBody', (body: Buffer) => ({ rawBody: body, body: { parsed: true } })],
      ['a Uint8Array in rawBody', (body: Buffer) => ({ rawBody: new Uint8Array(body) })],
      ['a string in rawBody', (body: Buffer) => ({ rawBody: body.toString() })],
      ['a Buffer in body', (body: Buffer) => ({ body })],
      ['a string in body', (body: Buffer) => ({ body: body.toString() })],
    ])(
      'WH-30 the module verifies a webhook request whose body other code has read and left as %s',
      async (_what, left) => {
        await expectHandled((request, signed) => ({
          ...request,
          fields: { ...left(signed.body), ...READ },
        }));
      },
    );

    it('WH-30 if a webhook request is not a stream, the module verifies the bytes in the property body of the request', async () => {
      await expectHandled((request, { body }) => ({ ...request, fields: { body, on: undefined } }));
    });

    it('WH-02 a forged or unsigned webhook request from a serverless adapter gets 401', async () => {
      const { path, headers, body } = synthetic(signedWebhook({ webhookSecret: 'another' }));
      const forged = { path, headers: { ...headers, 'content-length': body.byteLength }, body };
      for (const socket of [undefined, {}, { readable: true }]) {
        const response = await sendSynthetic(app.app, { ...forged, socket });
        expect(response).toMatchObject({ status: 401, body: { code: 'signature_mismatch' } });
      }
      for (const none of [undefined, null, 7, [], {}]) {
        const unsigned = { ...forged, headers: { ...headers, 'x-webhook-signature': none } };
        expect((await sendSynthetic(app.app, unsigned)).status).toBe(401);
      }
    });

    it.each([
      ['stream', (body: Buffer) => ({ body, fields: {} })],
      ['rawBody', (body: Buffer) => ({ body: Buffer.of(), fields: { rawBody: body, ...READ } })],
      [
        'body',
        (body: Buffer) => ({ body: Buffer.of(), fields: { body: body.toString(), ...READ } }),
      ],
    ])(
      'WH-04 WH-30 a webhook request without a socket gets 413 if its %s is over the limit',
      async (_from, carried) => {
        const idle = await timersAtRest(runtime);
        const pad = 'x'.repeat(1024 ** 2);
        const { path, headers, body } = synthetic(
          signedWebhook({ webhookSecret: SECRET }, { metadata: { pad } }),
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

    // Headers are read before the body, so their tests need one option only.
    if (server.option !== Object.keys(BODY_OPTIONS)[0]) return;

    it.each(ODD_VALUES)(
      'WH-30 a verified webhook request is accepted even if each header that the module does not need is %s',
      async (_what, value) => {
        const odd = Object.fromEntries(OPTIONAL.map((name) => [name, value]));
        await expectHandled((request) => ({ ...request, headers: { ...request.headers, ...odd } }));
      },
    );
  },
);
