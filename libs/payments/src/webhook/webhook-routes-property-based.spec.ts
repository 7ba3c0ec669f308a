import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import * as fc from 'fast-check';
import { express } from '../../../../test/support/http/express.js';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { holds } from '../../../../test/support/properties/property-check.js';
import { OPTIONS } from '../../../../test/support/webhook/webhook-application.js';
import { isCompanyId } from '../companies/company.js';
import { PaymentsModule } from '../payments.module.js';
import { resolveWebhookPath } from './webhook-options.js';
import { WebhookRoutes } from './webhook-routes.js';

// prettier-ignore
const piece = fc.constantFrom(
  '/', '/', '.', '..', '%2e', '%2f', '%2F', '%00', '%', '%zz', '%ff', '%c3%a4', '%', ';', ':', '*', '@', '-', '~',
  'webhooks', 'payments', 'WEBHOOKS', 'acme', 'Acme', '__proto__', '%61cme', '%2561', ':company', 'a'.repeat(101),
);
const pieces = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join(''));

describe('resolveWebhookPath', () => {
  const path = fc.oneof(
    fc.array(piece).map((parts) => parts.join('')),
    fc.array(fc.constantFrom('/', 'a', 'b.c', '~', '.', '-')).map((parts) => parts.join('')),
    fc.string({ unit: 'binary' }),
    fc.webPath(),
  );

  it('resolveWebhookPath() accepts only paths that clients send unchanged, and is idempotent', () => {
    holds(
      fc.property(path, (given) => {
        if (codeOf(() => resolveWebhookPath(given)) === 'options_invalid') return;
        const resolved = resolveWebhookPath(given)!;
        expect(new URL(`https://shop.example${resolved}`).pathname).toBe(resolved);
        expect(resolved).toMatch(/^\/[^/]/);
        expect(resolved).not.toMatch(/\/$|\/\/|[:*{}()%?#\\]/);
        expect(resolveWebhookPath(resolved)).toBe(resolved);
      }),
    );
  });
});

describe('WebhookRoutes', () => {
  let app: INestApplication;
  let routes: WebhookRoutes;

  beforeAll(async () => {
    class App {}
    Module({ imports: [PaymentsModule.forRoot(OPTIONS)] })(App);
    app = await NestFactory.create(App, new ExpressAdapter(), { logger: false });
    await app.init();
    routes = app.get(WebhookRoutes);
  });
  afterAll(() => app.close());

  it('WebhookRoutes finds the same company in a path as Express, and no company if Express has no route for the path', () => {
    let found: unknown;
    const router = express.Router();
    for (const path of routes.endpointPaths()) {
      router.post(path, ({ params }) => {
        found = params.company ?? 'default';
      });
    }
    const route = (url: string): unknown => {
      found = undefined;
      const request = { method: 'POST', url } as unknown as IncomingMessage;
      router(request, {} as ServerResponse, (error: unknown) => {
        // Express could not decode the parameter.
        if (error !== undefined) found = '%';
      });
      return found;
    };
    const near = pieces.map((text) => `/webhooks/payments${text}`);
    const company = fc.string({ unit: fc.constantFrom('a', 'Z', '.', '~', '-', '_', '9') });
    const named = company.map((id) => `/webhooks/payments/${id}`);
    const path = fc.oneof(
      pieces.map((text) => `/${text}`),
      near,
      named,
    );
    holds(
      fc.property(path, (url) => {
        const expected = route(url);
        const actual = routes.companyIn(url);
        if (expected === undefined || isCompanyId(expected)) expect(actual).toBe(expected);
        // The id is invalid, so the module rejects the request in either case.
        else expect(actual === undefined || isCompanyId(actual)).toBe(false);
      }),
    );
  });
});
