import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  HttpCode,
  Injectable,
  Module,
  Post,
  Req,
  RequestMethod,
  UseGuards,
  ValidationPipe,
  Version,
  VERSION_NEUTRAL,
  VersioningType,
} from '@nestjs/common';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { OnPaymentEvent, WebhookGuard } from 'nestjs-payments';
import type { InboxReceipt } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  OnAll,
  OnClass,
  OnMethods,
  Receiving,
  RequestScoped,
  Validated,
} from '../../support/webhook/webhook-controllers.js';
import type { Request } from '../../support/webhook/webhook-controllers.js';
import {
  ADAPTER_OPTIONS,
  ADAPTERS,
  BODY_OPTIONS,
  company,
  Orders,
  SECRET,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';
import { RouterModule } from '@nestjs/core';

const DEFAULT = company('default', SECRET);
const ACME = company('acme', 'whsec_acme');
@Injectable()
class Failing {
  @OnPaymentEvent('payout.failed')
  fail(): void {
    throw new Error('a-private-reason');
  }
}

const strict = () =>
  new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true });
const PATHS = [
  '/method',
  '/class',
  '/class/again',
  '/classes',
  '/all/x',
  '/all/x/y',
  '/scoped',
  '/validated',
];

describe.each(ADAPTER_OPTIONS)(
  'own controllers on $adapter with $option',
  ({ adapter, option }) => {
    let app: WebhookApplication;
    let orders: Orders;
    beforeAll(async () => {
      app = await WebhookApplication.start({
        adapter: ADAPTERS[adapter]!(),
        nest: BODY_OPTIONS[option]!,
        payments: { companies: [DEFAULT, ACME], webhookPath: false },
        controllers: [OnMethods, OnClass, OnAll, RequestScoped, Validated],
        providers: [Orders, Failing],
        main: (app) => void app.useGlobalPipes(strict()),
      });
      orders = app.app.get(Orders);
    });
    beforeEach(() => {
      app.log.lines.length = 0;
      orders.seen.length = 0;
    });
    afterAll(async () => app.app.close());

    it.each(PATHS)(
      'WH-17 a controller with WebhookGuard receives a webhook request at %s',
      async (path) => {
        const signed = signedWebhook(DEFAULT, { metadata: { pad: '€'.repeat(60_000) } });
        const response = await app.send(signed, { path });
        expect(response).toMatchObject({ status: 200, body: { status: 'handled' } });
        expect(orders.seen).toHaveLength(1);
        expect(orders.seen[0]!.context.raw.equals(signed.body)).toBe(true);
        expect(app.log.lines).toEqual([]);
      },
    );

    it('WH-17 the controller gets the verified event, the parsed body and the raw bytes', async () => {
      const signed = signedWebhook(DEFAULT);
      const { body } = await app.send(signed, { path: '/method' });
      const raw = signed.body.toString('base64');
      expect(body).toMatchObject({ verified: true, company: 'default', same: true, raw });
    });

    it('WH-17 the pipes of the application run on the parsed envelope', async () => {
      const { body } = await app.send(signedWebhook(DEFAULT), { path: '/validated' });
      expect(body).toMatchObject({ validated: true });
    });

    it.each(PATHS)(
      'WH-17 WebhookGuard at %s rejects the same requests as the endpoint, with the same responses',
      async (path) => {
        const signed = signedWebhook(DEFAULT);
        const other = signedWebhook(ACME);
        const headers = (more: Record<string, string | undefined>) => ({ path, headers: more });
        const responses = [
          await app.send(other, { path }),
          await app.send(signed, headers({ 'X-Webhook-Signature': undefined })),
          await app.send(signedWebhook(DEFAULT, '{"id":"e"}'), { path }),
          await app.send(signedWebhook(DEFAULT, { metadata: { pad: 'x'.repeat(1024 ** 2) } }), {
            path,
          }),
          await app.send(signed, headers({ 'Content-Type': 'text/plain' })),
          await app.send(signed, headers({ 'Content-Encoding': 'gzip' })),
          await app.exchange(path, { headers: signedWebhook(DEFAULT, '').headers }),
        ];
        expect(
          responses.map(({ status, body }) => [status, body['statusCode'], body['code']]),
        ).toEqual([
          [401, 401, 'signature_mismatch'],
          [401, 401, 'signature_missing'],
          [400, 400, 'payload_invalid'],
          [413, 413, 'payload_too_large'],
          [415, 415, 'content_type_unsupported'],
          [415, 415, 'content_encoding_unsupported'],
          [400, 400, 'payload_invalid'],
        ]);
        expect(orders.seen).toEqual([]);
      },
    );

    it('WH-17 WebhookGuard reads the company from the path parameter ":company"', async () => {
      expect(await app.send(signedWebhook(ACME), { path: '/method/of/acme' })).toMatchObject({
        status: 200,
      });
      expect(await app.send(signedWebhook(ACME), { path: '/method/of/default' })).toMatchObject({
        status: 401,
      });
      expect(await app.send(signedWebhook(ACME), { path: '/method/of/nobody' })).toMatchObject({
        status: 401,
        body: { code: 'company_unknown' },
      });
      expect(orders.seen.map(({ context }) => context.company)).toEqual(['acme']);
    });

    it.each(['/method', '/class', '/all/x'])(
      'WH-17 WH-08 methods other than POST at %s get 404 or 405, never 500',
      async (path) => {
        for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
          const { headers, body } = signedWebhook(DEFAULT);
          const bare = method === 'GET' || method === 'HEAD';
          const response = await app.exchange(path, { method, ...(!bare && { headers, body }) });
          expect([404, 405]).toContain(response.status);
        }
        expect(app.log.lines).toEqual([]);
      },
    );

    it('WH-17 the response is 503 without the error of the handler if PaymentInbox.receive() throws', async () => {
      const failing = signedWebhook(DEFAULT, { eventType: 'payout.failed' });
      const response = await app.send(failing, { path: '/method' });
      expect(response.status).toBe(503);
      expect(response.body).toEqual({
        statusCode: 503,
        message: expect.stringMatching(/1 of 1 handlers have not succeeded/),
      });
      expect(response.text).not.toContain('a-private-reason');
    });

    it('WH-17 with webhookPath: false, the module mounts no endpoint, and does not change the other routes', async () => {
      expect(await app.send(signedWebhook(DEFAULT))).toMatchObject({ status: 404 });
      const open = await app.send(signedWebhook(DEFAULT), { path: '/method/open' });
      expect(open.status).toBe(201);
      const parsed = adapter === 'fastify' || option !== 'bodyParser: false';
      expect(open.body['body'] !== undefined).toBe(parsed);
    });
  },
);

abstract class Hooks extends Receiving {
  @Post()
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async receive(@Req() request: Request): Promise<InboxReceipt> {
    return this.take(request);
  }
}

@Controller('hooks')
class Plain extends Hooks {}

@Controller({ path: 'versioned', version: ['1', '2'] })
class Versioned extends Hooks {
  @Post('three')
  @Version('3')
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async three(@Req() request: Request): Promise<InboxReceipt> {
    return this.take(request);
  }

  @Post('any')
  @Version(VERSION_NEUTRAL)
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async any(@Req() request: Request): Promise<InboxReceipt> {
    return this.take(request);
  }
}

@Controller()
class Root extends Hooks {}

@Module({ controllers: [Plain] })
class Inner {}
@Module({ imports: [Inner], controllers: [OnMethods] })
class Feature {}

interface Case extends ModuleMetadata {
  main?: (app: INestApplication) => unknown;
  good: string[];
  gone?: string[];
}
const uri = VersioningType.URI as const;
const CASES: Record<string, Case> = {
  'a global prefix that excludes the route': {
    controllers: [Plain, OnMethods],
    main: (app) => app.setGlobalPrefix('api', { exclude: ['hooks', 'method/of/:company'] }),
    good: ['/hooks', '/api/method', '/method/of/default'],
    gone: ['/api/hooks', '/api/method/of/default'],
  },
  'a global prefix that excludes POST requests of a route for all methods': {
    controllers: [OnAll],
    main: (app) =>
      app.setGlobalPrefix('api', { exclude: [{ path: 'all/*rest', method: RequestMethod.POST }] }),
    good: ['/api/all/x'],
  },
  'no path at all': { controllers: [Root], good: ['/', '/?a=b'] },
  'URI versioning with a default version, a prefix and a global prefix': {
    controllers: [Versioned, Plain],
    main: (app) =>
      app
        .setGlobalPrefix('api')
        .enableVersioning({ type: uri, prefix: 'r', defaultVersion: ['7', VERSION_NEUTRAL] }),
    good: [
      '/api/r1/versioned',
      '/api/r3/versioned/three',
      '/api/versioned/any',
      '/api/r7/hooks',
      '/api/hooks',
    ],
    gone: ['/api/versioned', '/r7/hooks', '/api/v7/hooks', '/hooks'],
  },
  'URI versioning without a prefix': {
    controllers: [Plain],
    main: (app) => app.enableVersioning({ type: uri, prefix: false, defaultVersion: '2026-01' }),
    good: ['/2026-01/hooks'],
    gone: ['/hooks'],
  },
  'URI versioning and an exclusion from the global prefix': {
    controllers: [Plain, OnMethods],
    main: (app) =>
      app
        .setGlobalPrefix('api', { exclude: ['hooks', 'v1/method'] })
        .enableVersioning({ type: uri, defaultVersion: '1' }),
    good: ['/v1/hooks', '/api/v1/method'],
    gone: ['/api/v1/hooks', '/v1/method'],
  },
  'declared versions without enabled versioning': {
    controllers: [Versioned],
    good: ['/versioned', '/versioned/three', '/versioned/any'],
  },
  'RouterModule paths': {
    imports: [
      Feature,
      RouterModule.register([
        { path: 'shop', module: Feature, children: [{ path: 'in/:tenant', module: Inner }] },
      ]),
    ],
    main: (app) => app.setGlobalPrefix('api'),
    good: ['/api/shop/method', '/api/shop/method/of/default', '/api/shop/in/t1/hooks'],
    gone: ['/shop/method', '/api/method', '/api/shop/hooks'],
  },
};
const SETUPS = ADAPTER_OPTIONS.flatMap((server) =>
  Object.entries(CASES).map(([title, setup]) => ({ ...server, title, setup })),
);

describe.each(SETUPS)(
  'WH-17 own routes under $title on $adapter with $option',
  ({ adapter, option, setup }) => {
    it('WH-17 guarded routes receive webhook requests at the paths where Nest mounts them, and nowhere else', async () => {
      const { main, good, gone = [], ...metadata } = setup;
      await using app = await WebhookApplication.start({
        adapter: ADAPTERS[adapter]!(),
        nest: BODY_OPTIONS[option]!,
        // The feature modules can inject the dependencies of WebhookGuard without importing PaymentsModule.
        payments: { webhookPath: false, isGlobal: true },
        main: async (app) => void (await main?.(app)),
        ...metadata,
      });
      const company = { webhookSecret: SECRET };
      for (const path of good) {
        expect([path, (await app.send(signedWebhook(company), { path })).status]).toEqual([
          path,
          200,
        ]);
        const headers = { 'X-Webhook-Signature': 'sha512=00' };
        expect(await app.send(signedWebhook(company), { path, headers })).toMatchObject({
          status: 401,
        });
      }
      for (const path of gone) {
        expect([path, (await app.send(signedWebhook(company), { path })).status]).toEqual([
          path,
          404,
        ]);
      }
    });
  },
);
