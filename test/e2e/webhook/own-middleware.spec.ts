import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import type { Middleware } from '../../support/http/express.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';
import {
  ADAPTERS,
  BODY_OPTIONS,
  Orders,
  SECRET,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

type Read = (
  request: Parameters<Middleware>[0],
  next: (body: string) => void,
) => void | Promise<void>;

/** Ways in which middleware of an application reads a body. The middleware gets the bytes. */
const READERS: Readonly<Record<string, Read>> = {
  'the events "data" and "end"': (request, next) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => next(Buffer.concat(chunks).toString()));
  },
  'the event "end" first': (request, next) => {
    let body = '';
    request.once('end', () => next(body)).addListener('data', (chunk: Buffer) => (body += chunk));
  },
  'setEncoding()': (request, next) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => (body += chunk)).on('end', () => next(body));
  },
  'changes to the bytes': (request, next) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk;
      chunk.fill(0);
    });
    request.on('end', () => next(body));
  },
  'pipe()': async (request, next) => next(await text(request.pipe(new PassThrough()))),
};
/** Ways in which middleware of an application waits for a body. The middleware gets only the end of the body. */
const WITHOUT_BYTES: Readonly<Record<string, Read>> = {
  'an iterator': async (request, next) => void text(request).then(next),
  'the event "readable"': (request, next) => {
    request.on('readable', () => request.read() as unknown).on('end', () => next(''));
  },
};
const rows = (readers: Readonly<Record<string, Read>>) =>
  Object.entries(readers).flatMap(([title, read]) =>
    Object.keys(BODY_OPTIONS).map((option) => ({ title, read, option })),
  );

const signed = (id: string) => signedWebhook({ webhookSecret: SECRET }, { id });

/** Starts an application whose main.ts has a middleware that reads each body. It runs after middleware of modules. */
async function start(adapter: string, option: string, read: Read, seen: string[]) {
  const middleware: Middleware = (request, _, next) =>
    void read(request, (body) => {
      seen.push(body);
      next();
    });
  return WebhookApplication.start({
    adapter: ADAPTERS[adapter]!(),
    nest: BODY_OPTIONS[option]!,
    controllers: [OnMethods],
    providers: [Orders],
    main: (app) => void app.use(middleware),
  });
}

describe.each([...rows(READERS), ...rows(WITHOUT_BYTES)])(
  'AP-20 middleware in main.ts that waits for the body with $title, $option',
  ({ title, read, option }) => {
    it('AP-20 on Express, webhook requests are handled even if middleware in main.ts waits for their bodies', async () => {
      const seen: string[] = [];
      await using app = await start('express', option, read, seen);
      const events = [signed('e-1'), signed('e-2')];
      expect(await app.send(events[0]!)).toMatchObject({ status: 200 });
      expect(await app.send(events[1]!, { path: '/method' })).toMatchObject({ status: 200 });
      expect(app.app.get(Orders).seen.map(({ event }) => event.id)).toEqual(['e-1', 'e-2']);
      expect(seen).toEqual(
        events.map(({ body }) => (title in READERS ? Buffer.from(body).toString() : '')),
      );
    });

    it('AP-20 on Fastify, the log names middleware that reads the body before the module can', async () => {
      await using app = await start('fastify', option, read, []);
      app.log.lines.length = 0;
      for (const path of ['/webhooks/payments', '/method']) {
        expect(await app.send(signed('e-1'), { path })).toMatchObject({
          status: 500,
          body: { code: 'raw_body_unavailable' },
        });
      }
      expect(app.log.lines).toEqual([
        expect.stringMatching(
          /^error .*read its body before.*On Fastify, .*app\.use\(\).*request\.rawBody/,
        ),
      ]);
    });
  },
);

it('AP-20 on Express, a forged webhook request is rejected after middleware has read its body', async () => {
  await using app = await start('express', 'no option', READERS['pipe()']!, []);
  const forged = signedWebhook({ webhookSecret: 'whsec_other' });
  expect(await app.send(forged)).toMatchObject({ status: 401 });
  expect(app.app.get(Orders).seen).toEqual([]);
});

it('AP-20 on Fastify, middleware in main.ts that keeps the bytes as request.rawBody is compatible', async () => {
  const keep: Read = async (request, next) => {
    Object.assign(request, { rawBody: Buffer.from(await text(request)) });
    next('');
  };
  await using app = await start('fastify', 'no option', keep, []);
  for (const path of ['/webhooks/payments', '/method']) {
    expect(await app.send(signed('e-1'), { path })).toMatchObject({ status: 200 });
  }
  expect(app.app.get(Orders).count('e-1')).toBe(1);
});
