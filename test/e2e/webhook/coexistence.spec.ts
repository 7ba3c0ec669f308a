import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { All, Controller, Post, Req } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { express } from '../../support/http/express.js';
import type { Exchange } from '../../support/http/http-exchange.js';
import {
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

interface AnyRequest {
  method: string;
  body?: unknown;
  rawBody?: Buffer;
}

/** Returns the parts of a request that a route receives. */
@Controller()
class Mirror {
  @All('mirror')
  show(@Req() { method, body, rawBody }: AnyRequest): object {
    return { method, body, kind: body?.constructor?.name, raw: rawBody?.toString('base64') };
  }

  @Post('webhooks/payments/a/b')
  below(@Req() request: AnyRequest): object {
    return this.show(request);
  }

  @Post('webhooks')
  above(@Req() request: AnyRequest): object {
    return this.show(request);
  }
}

const json = { 'Content-Type': 'application/json' };
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const bytes = (text: string) => Buffer.from(text);
const many = (length: number) => bytes(JSON.stringify({ pad: 'x'.repeat(length) }));

const REQUESTS: readonly [string, Exchange, path?: string][] = [
  ['a JSON body', { headers: json, body: bytes('{"a": [1, "ü"]}') }],
  ['malformed JSON', { headers: json, body: bytes('{"a":') }],
  ['JSON over the limit of Express', { headers: json, body: many(110_000) }],
  ['JSON over the limit of Fastify', { headers: json, body: many(1_100_000) }],
  ['chunked JSON', { headers: json, body: [bytes('{"a"'), bytes(':1}')] }],
  [
    'compressed JSON',
    { headers: { ...json, 'Content-Encoding': 'gzip' }, body: gzipSync('{"a":1}') },
  ],
  ['a form', { headers: form, body: bytes('a=1&b[c]=2&d=%C3%BC') }],
  ['a text body', { headers: { 'Content-Type': 'text/plain' }, body: bytes('hello') }],
  [
    'a multipart body',
    {
      headers: { 'Content-Type': 'multipart/form-data; boundary=x' },
      body: bytes('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'),
    },
  ],
  ['a body without a content type', { body: bytes('{"a":1}') }],
  ['a webhook request', signedWebhook({ webhookSecret: SECRET })],
  ['a PUT', { method: 'PUT', headers: json, body: bytes('{"a":1}') }],
  ['a GET', { method: 'GET' }],
  [
    'a request to the parent of the webhook path',
    { headers: json, body: bytes('{"a":1}') },
    '/webhooks',
  ],
  [
    'a request to a path below the webhook path',
    { headers: json, body: bytes('{"a":1}') },
    '/webhooks/payments/a/b',
  ],
  [
    'a request to a path that continues the webhook path without a slash',
    { headers: json, body: bytes('{"a":1}') },
    '/webhooks/paymentsx',
  ],
  ['a request to an unknown path', { headers: json, body: bytes('{"a":1}') }, '/nowhere'],
  ['a request to a path that is not a URI', { headers: json, body: bytes('{"a":1}') }, '/%FF'],
];

type Main = (app: INestApplication) => void;
const asItIs: Main = () => {};
const MAINS: Record<string, [adapter: string, Main]> = {
  'express, a plain main.ts': ['express', asItIs],
  'express, app.use(express.json())': ['express', (app) => void app.use(express.json())],
  'express, a larger limit and text': [
    'express',
    (app) => {
      (app as NestExpressApplication).useBodyParser('json', { limit: '5mb' }).useBodyParser('text');
    },
  ],
  'express, express.raw() for all types': [
    'express',
    (app) => void app.use(express.raw({ type: '*/*' })),
  ],
  'fastify, a plain main.ts': ['fastify', asItIs],
  'fastify, a parser of its own': [
    'fastify',
    (app) => {
      (app as NestFastifyApplication)
        .getHttpAdapter()
        .getInstance()
        .addContentTypeParser('text/plain', { parseAs: 'string' }, (_, body, done) =>
          done(null, { text: body }),
        );
    },
  ],
};
const SETUPS = Object.entries(MAINS).flatMap(([title, [adapter, main]]) =>
  Object.keys(BODY_OPTIONS).map((option) => ({ title, adapter, main, option })),
);

describe.each(SETUPS)(
  'WH-12 routes next to the webhook on $title with $option',
  ({ adapter, main, option }) => {
    let plain: WebhookApplication;
    let withModule: WebhookApplication;
    beforeAll(async () => {
      const start = (payments: false | object) =>
        WebhookApplication.start({
          adapter: ADAPTERS[adapter]!(),
          nest: BODY_OPTIONS[option]!,
          controllers: [Mirror],
          payments,
          main,
        });
      plain = await start(false);
      withModule = await start({});
    });
    afterAll(async () => {
      await plain.app.close();
      await withModule.app.close();
    });

    it.each(REQUESTS)(
      'WH-12 the response to %s is exactly the same as without the module',
      async (_, request, path = '/mirror') => {
        const without = await plain.exchange(path, request);
        const withWebhook = await withModule.exchange(path, request);
        expect(comparable(withWebhook)).toEqual(comparable(without));
      },
    );

    it('WH-12 the module receives webhook requests next to the routes of the application', async () => {
      const signed = signedWebhook(
        { webhookSecret: SECRET },
        { metadata: { pad: 'x'.repeat(200_000) } },
      );
      expect(await withModule.send(signed)).toMatchObject({ status: 200 });
      const forged = { headers: { 'X-Webhook-Signature': 'x' }, body: bytes('{not json') };
      expect(await withModule.send(signed, forged)).toMatchObject({
        status: 401,
        body: { code: 'signature_malformed' },
      });
    });
  },
);

describe.each(ADAPTER_OPTIONS)('WH-12 limits on $adapter with $option', ({ adapter, option }) => {
  it('WH-12 the webhook route has its own body limit, which can be below or above the limits of other routes', async () => {
    await using app = await WebhookApplication.start({
      adapter: adapter === 'fastify' ? new FastifyAdapter({ bodyLimit: 64 }) : new ExpressAdapter(),
      nest: BODY_OPTIONS[option]!,
      controllers: [Mirror],
      payments: { webhook: { bodyLimitBytes: 2048 } },
      main: (app) => {
        if (adapter === 'express' && option !== 'bodyParser: false') {
          (app as NestExpressApplication).useBodyParser('json', { limit: 64 });
        }
      },
    });
    const company = { webhookSecret: SECRET };
    const bare = signedWebhook(company, { id: 'e', metadata: { pad: '' } }).body.byteLength;
    const ofSize = (size: number) =>
      signedWebhook(company, { id: 'e', metadata: { pad: 'x'.repeat(size - bare) } });
    expect(await app.send(ofSize(2048))).toMatchObject({ status: 200 });
    const over = await app.send(ofSize(2049));
    expect(over).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
    expect(over.body['message']).toMatch(/2048 bytes.*"webhook\.bodyLimitBytes"/);
    const mirrored = await app.exchange('/mirror', { headers: json, body: many(100) });
    const parsed = adapter === 'fastify' || option !== 'bodyParser: false';
    expect(mirrored.status).toBe(parsed ? 413 : 200);
  });
});

function comparable({
  status,
  headers,
  text,
}: Awaited<ReturnType<WebhookApplication['exchange']>>) {
  const { date: _, ...rest } = headers;
  return { status, headers: rest, text };
}
