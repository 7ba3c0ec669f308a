import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { MiddlewareConsumer, NestMiddleware, NestModule } from '@nestjs/common';
import { signedDelivery } from 'nestjs-payments/testing';
import {
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  STAGES,
  WebhookApplication,
} from '../support/webhook.application.js';

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

describe.each(STAGES)('middleware on $adapter with $option', ({ adapter, option }) => {
  it('12: runs for deliveries as for any route, and CORS and security headers with it', async () => {
    seen.length = 0;
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      imports: [Logged],
      main: (app) => {
        app.enableCors({ origin: 'https://shop.example' });
        // Since Nest 12.
        const secure = app as Partial<
          Record<'useSecurityHeaders' | 'enableCsrfProtection', () => void>
        >;
        secure.useSecurityHeaders?.call(app);
        secure.enableCsrfProtection?.call(app);
      },
    });
    const answer = await app.send(signedDelivery(COMPANY));
    expect(answer.status).toBe(200);
    expect(answer.headers['access-control-allow-origin']).toBe('https://shop.example');
    expect(seen).toEqual(['/webhooks/payments']);
  });
});
