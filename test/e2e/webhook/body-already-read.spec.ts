import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { Controller, Post } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WebhookGuard } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { express } from '../../support/http/express.js';
import type { Middleware } from '../../support/http/express.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';
import {
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };

function onExpress(...middlewares: Middleware[]): AbstractHttpAdapter {
  const server = express();
  for (const middleware of middlewares) server.use(middleware);
  return new ExpressAdapter(server);
}

type Hook = 'onRequest' | 'preParsing';
interface FastifyRequest {
  raw: Readable;
  rawBody?: Buffer;
}

/** Fastify with a hook on the instance, which runs before the hooks of a route. */
function onFastify(
  name: Hook,
  hook: (request: FastifyRequest) => Promise<void>,
): AbstractHttpAdapter {
  const adapter = new FastifyAdapter();
  adapter.getInstance().addHook(name, hook as (request: unknown) => Promise<void>);
  return adapter;
}

const drain = async ({ raw }: FastifyRequest): Promise<void> => void (await text(raw));
const keep = async (request: FastifyRequest): Promise<void> => {
  request.rawBody = Buffer.from(await text(request.raw));
};
const readByHand: Middleware = (request, _, next) => {
  void text(request).then(() => next());
};
const keepBytes = (request: object, _: unknown, bytes: Buffer) =>
  void Object.assign(request, { rawBody: bytes });

const DRAINED: Record<string, () => AbstractHttpAdapter> = {
  'express.json() before Nest': () => onExpress(express.json()),
  'a middleware before Nest that reads by hand': () => onExpress(readByHand),
  'an onRequest hook of Fastify': () => onFastify('onRequest', drain),
  'a preParsing hook of Fastify': () => onFastify('preParsing', drain),
};
const KEPT: Record<string, () => AbstractHttpAdapter> = {
  'express.raw() before Nest': () => onExpress(express.raw({ type: '*/*' })),
  'express.json() with a verify that keeps the bytes': () =>
    onExpress(express.json({ verify: keepBytes })),
  'a preParsing hook of Fastify that keeps the bytes': () => onFastify('preParsing', keep),
};

const staged = (setups: Record<string, () => AbstractHttpAdapter>) =>
  Object.entries(setups).flatMap(([title, adapter]) =>
    Object.keys(BODY_OPTIONS).map((option) => ({ title, adapter, option })),
  );

const PATHS = ['/webhooks/payments', '/method'];

async function start(adapter: AbstractHttpAdapter, option: string): Promise<WebhookApplication> {
  const nest = BODY_OPTIONS[option]!;
  const app = await WebhookApplication.start({ adapter, nest, controllers: [OnMethods] });
  app.log.lines.length = 0;
  return app;
}

describe.each(staged(DRAINED))(
  'WH-13 a body that $title has read, with $option',
  ({ adapter, option }) => {
    it('WH-13 a webhook request whose body other code has read gets 500, and one log line per minute names cause and fix', async () => {
      await using app = await start(adapter(), option);
      for (const path of PATHS) {
        const response = await app.send(signedWebhook(COMPANY), { path });
        expect(response).toMatchObject({
          status: 500,
          body: { statusCode: 500, code: 'raw_body_unavailable' },
        });
        const chunks = signedWebhook(COMPANY).body;
        const chunked = { path, body: [chunks.subarray(0, 9), chunks.subarray(9)] };
        expect(await app.send(signedWebhook(COMPANY), chunked)).toMatchObject({ status: 500 });
      }
      expect(app.log.lines).toHaveLength(1);
      expect(app.log.lines[0]).toMatch(
        /^error .*signature of a webhook request cannot be checked.*read its body before.*add the parser later/,
      );
    });

    it('WH-13 a webhook request with another content type or an encoded body gets 415, even if other code has read the body', async () => {
      await using app = await start(adapter(), option);
      const signed = signedWebhook(COMPANY);
      const xml = { headers: { 'Content-Type': 'application/xml' } };
      expect(await app.send(signed, xml)).toMatchObject({ status: 415 });
      const identity = { headers: { 'Content-Encoding': 'x-other' } };
      expect(await app.send(signed, identity)).toMatchObject({ status: 415 });
    });
  },
);

describe.each(staged(KEPT))(
  'WH-13 bytes that $title has kept, with $option',
  ({ adapter, option }) => {
    it('WH-13 the module verifies a webhook request with the bytes that other code has kept', async () => {
      await using app = await start(adapter(), option);
      for (const path of PATHS) {
        expect(await app.send(signedWebhook(COMPANY), { path })).toMatchObject({ status: 200 });
        const other = signedWebhook({ webhookSecret: 'whsec_other' });
        expect(await app.send(other, { path })).toMatchObject({ status: 401 });
      }
      expect(app.log.matching(/^(?!warn No handler takes)/)).toEqual([
        expect.stringMatching(/^warn A webhook request of company default was rejected/),
      ]);
    });
  },
);

@Controller('hooks')
class Unguarded {
  @Post()
  receive(): void {}
}

it.each(Object.keys(ADAPTERS))(
  'WH-04 on %s, WebhookGuard as a global guard rejects a body over the limit, even if a parser has kept its bytes',
  async (adapter) => {
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: { rawBody: true },
      controllers: [Unguarded],
      payments: { webhookPath: false, webhook: { bodyLimitBytes: 1024 } },
      main: (nest) => void nest.useGlobalGuards(nest.get(WebhookGuard, { strict: false })),
    });
    const path = '/hooks';
    expect(await app.send(signedWebhook(COMPANY), { path })).toMatchObject({ status: 201 });
    const large = signedWebhook(COMPANY, { metadata: { pad: 'x'.repeat(1024) } });
    expect(await app.send(large, { path })).toMatchObject({
      status: 413,
      body: { code: 'payload_too_large' },
    });
  },
);
