import { describe, expect, it } from '@jest/globals';
import {
  Controller,
  HttpCode,
  Module,
  Post,
  Req,
  RequestMethod,
  UseGuards,
  Version,
  VERSION_NEUTRAL,
  VersioningType,
} from '@nestjs/common';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { WebhookGuard } from 'nestjs-payments';
import type { InboxReceipt } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { OnAll, OnMethods, Receiving } from '../../support/webhook/webhook-controllers.js';
import type { Request } from '../../support/webhook/webhook-controllers.js';
import {
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

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
  headers?: Record<string, string>;
}
const uri = VersioningType.URI as const;
const CASES: Record<string, Case> = {
  'a global prefix': {
    controllers: [Plain, OnMethods],
    main: (app) => app.setGlobalPrefix('api'),
    good: ['/api/hooks', '/api/method', '/api/method/of/default'],
    gone: ['/hooks', '/method'],
  },
  'a global prefix that excludes the route': {
    controllers: [Plain, OnMethods],
    main: (app) => app.setGlobalPrefix('api', { exclude: ['hooks', 'method/of/:company'] }),
    good: ['/hooks', '/api/method', '/method/of/default'],
    gone: ['/api/hooks', '/api/method/of/default'],
  },
  'a global prefix that excludes the route for POST, where it serves all methods': {
    controllers: [OnAll],
    main: (app) =>
      app.setGlobalPrefix('api', { exclude: [{ path: 'all/*rest', method: RequestMethod.POST }] }),
    good: ['/api/all/x'],
  },
  'a global prefix and a controller without a path': {
    controllers: [Root],
    main: (app) => app.setGlobalPrefix('api'),
    good: ['/api'],
  },
  'no path at all': { controllers: [Root], good: ['/', '/?a=b'] },
  'URI versioning': {
    controllers: [Versioned, Plain],
    main: (app) => app.enableVersioning({ type: uri }),
    good: ['/v1/versioned', '/v2/versioned', '/v3/versioned/three', '/versioned/any', '/hooks'],
    gone: ['/versioned', '/v3/versioned', '/v1/versioned/three', '/v1/hooks'],
  },
  'URI versioning with a default version, a prefix and a global prefix': {
    controllers: [Versioned, Plain],
    main: (app) =>
      app
        .setGlobalPrefix('api')
        .enableVersioning({ type: uri, prefix: 'r', defaultVersion: ['7', VERSION_NEUTRAL] }),
    good: ['/api/r1/versioned', '/api/r3/versioned/three', '/api/r7/hooks', '/api/hooks'],
    gone: ['/r7/hooks', '/api/v7/hooks', '/hooks'],
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
  'header versioning': {
    controllers: [Versioned],
    main: (app) => app.enableVersioning({ type: VersioningType.HEADER, header: 'X-V' }),
    headers: { 'X-V': '2' },
    good: ['/versioned', '/versioned/any'],
    gone: ['/versioned/three'],
  },
  'versions declared where none are enabled': {
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
      const { main, good, gone = [], headers = {}, ...metadata } = setup;
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
        expect([path, (await app.send(signedWebhook(company), { path, headers })).status]).toEqual([
          path,
          200,
        ]);
        const forged = { ...headers, 'X-Webhook-Signature': 'sha512=00' };
        expect(await app.send(signedWebhook(company), { path, headers: forged })).toMatchObject({
          status: 401,
        });
      }
      for (const path of gone) {
        expect([path, (await app.send(signedWebhook(company), { path, headers })).status]).toEqual([
          path,
          404,
        ]);
      }
    });
  },
);
