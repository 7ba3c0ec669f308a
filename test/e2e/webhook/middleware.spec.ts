import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { MiddlewareConsumer, NestMiddleware, NestModule } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };
const seen: (string | undefined)[] = [];

@Injectable()
class AccessLog implements NestMiddleware {
  use(request: { originalUrl?: string }, _: unknown, next: () => void): void {
    seen.push(request.originalUrl);
    next();
  }
}

@Module({})
class Logged implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(AccessLog).forRoutes('{*path}');
  }
}

describe.each(ADAPTER_OPTIONS)('middleware on $adapter with $option', ({ adapter, option }) => {
  it('WH-12 middleware runs for webhook requests as for any route, including CORS and security headers', async () => {
    seen.length = 0;
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      imports: [Logged],
      main: (app) => {
        app.enableCors({ origin: 'https://shop.example' });
        // These functions exist since Nest 12.
        const secure = app as Partial<
          Record<'useSecurityHeaders' | 'enableCsrfProtection', () => void>
        >;
        secure.useSecurityHeaders?.call(app);
        secure.enableCsrfProtection?.call(app);
      },
    });
    const response = await app.send(signedWebhook(COMPANY));
    expect(response.status).toBe(200);
    expect(response.headers['access-control-allow-origin']).toBe('https://shop.example');
    expect(seen).toEqual(['/webhooks/payments']);
  });
});

describe.each(Object.keys(BODY_OPTIONS))('plugins of Fastify with %s', (option) => {
  const hooked: string[] = [];
  type Route = { preParsing?: unknown; onRequest?: unknown };
  const note =
    (name: string) =>
    (request: { url: string }, _reply: unknown, ...rest: unknown[]): void => {
      hooked.push(`${name} ${request.url}`);
      const done = rest.at(-1) as (error: null, payload?: unknown) => void;
      done(null, rest.length > 1 ? rest[0] : undefined);
    };

  it.each([
    ['one preParsing hook', (route: Route) => (route.preParsing = note('theirs'))],
    [
      'several preParsing hooks',
      (route: Route) => (route.preParsing = [note('theirs'), note('more')]),
    ],
  ])('WH-12 the module keeps %s of a Fastify plugin on the webhook route', async (_, onRoute) => {
    hooked.length = 0;
    const adapter = new FastifyAdapter();
    adapter.getInstance().addHook('onRoute', (route) => void onRoute(route as Route));
    await using app = await WebhookApplication.start({ adapter, nest: BODY_OPTIONS[option]! });
    expect(await app.send(signedWebhook(COMPANY))).toMatchObject({ status: 200 });
    expect(hooked[0]).toBe('theirs /webhooks/payments');
  });
});
