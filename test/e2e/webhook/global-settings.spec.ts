import { describe, expect, it } from '@jest/globals';
import {
  Catch,
  Controller,
  Get,
  Inject,
  Injectable,
  RequestMethod,
  ValidationPipe,
  VersioningType,
} from '@nestjs/common';
import type {
  ArgumentsHost,
  CallHandler,
  CanActivate,
  ExceptionFilter,
  ExecutionContext,
  INestApplication,
  NestInterceptor,
  Provider,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, HttpAdapterHost } from '@nestjs/core';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { map } from 'rxjs';
import type { Observable } from 'rxjs';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };

@Injectable()
class PassNeeded implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, unknown> }>();
    return headers['x-pass'] === 'yes';
  }
}

@Injectable()
class Wrapping implements NestInterceptor {
  intercept(_: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ wrapped: data })));
  }
}

@Catch()
class Teapot implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(_: unknown, host: ArgumentsHost): void {
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { teapot: true }, 418);
  }
}

const strictPipe = () =>
  new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true });

@Controller('cats')
class Cats {
  @Get()
  all(): string[] {
    return ['Tom'];
  }
}

const PROVIDERS: Provider[] = [
  { provide: APP_GUARD, useClass: PassNeeded },
  { provide: APP_PIPE, useFactory: strictPipe },
  { provide: APP_INTERCEPTOR, useClass: Wrapping },
  { provide: APP_FILTER, useClass: Teapot },
];

const inMain = (app: INestApplication): void => {
  app.useGlobalGuards(new PassNeeded());
  app.useGlobalPipes(strictPipe());
  app.useGlobalInterceptors(new Wrapping());
  app.useGlobalFilters(new Teapot(app.get(HttpAdapterHost)));
};

const SETUPS = [
  { title: 'global enhancers as providers', providers: PROVIDERS, main: () => {} },
  { title: 'global enhancers in main.ts', providers: [], main: inMain },
];
const ADAPTER_SETUPS = ADAPTER_OPTIONS.flatMap((server) =>
  SETUPS.map((setup) => ({ ...server, ...setup })),
);

describe.each(ADAPTER_SETUPS)(
  'WH-12 $title on $adapter with $option',
  ({ adapter, option, providers, main }) => {
    it('WH-12 global enhancers do not affect webhook requests, and still affect other routes', async () => {
      await using app = await WebhookApplication.start({
        adapter: ADAPTERS[adapter]!(),
        nest: BODY_OPTIONS[option]!,
        controllers: [Cats],
        providers: [Orders, ...providers],
        main,
      });
      const signed = signedWebhook(COMPANY, { metadata: { a: { b: [1] } } });
      const response = await app.send(signed);
      const { id } = JSON.parse(signed.body.toString()) as { id: string };
      expect(response).toMatchObject({
        status: 200,
        body: { received: true, status: 'handled', id },
      });
      expect(app.app.get(Orders).seen[0]!.event).toEqual(JSON.parse(signed.body.toString()));
      const forged = { headers: { 'X-Webhook-Signature': 'sha512=' } };
      expect(await app.send(signed, forged)).toMatchObject({
        status: 401,
        body: { statusCode: 401, code: 'signature_malformed' },
      });
      expect(await app.exchange('/cats', { method: 'GET' })).toMatchObject({ status: 418 });
      const passed = { method: 'GET', headers: { 'X-Pass': 'yes' } };
      expect((await app.exchange('/cats', passed)).body).toEqual({ wrapped: ['Tom'] });
    });
  },
);

const uri = VersioningType.URI as const;
const PATHS: Record<string, [(app: INestApplication) => unknown, good: string[], gone: string[]]> =
  {
    'a global prefix': [
      (app) => app.setGlobalPrefix('api'),
      ['/api/webhooks/payments', '/api/webhooks/payments/default'],
      ['/webhooks/payments', '/webhooks/payments/default'],
    ],
    'a global prefix that excludes the path and the paths of the companies': [
      (app) => app.setGlobalPrefix('api', { exclude: ['webhooks/payments'] }),
      ['/webhooks/payments', '/webhooks/payments/default'],
      ['/api/webhooks/payments', '/api/webhooks/payments/default'],
    ],
    'a global prefix that excludes the path for POST and all below it': [
      (app) =>
        app.setGlobalPrefix('api', {
          exclude: [{ path: 'webhooks/payments{/*rest}', method: RequestMethod.POST }],
        }),
      ['/webhooks/payments', '/webhooks/payments/default'],
      ['/api/webhooks/payments'],
    ],
    'a global prefix that excludes the path for GET': [
      (app) =>
        app.setGlobalPrefix('api', {
          exclude: [{ path: 'webhooks/payments', method: RequestMethod.GET }],
        }),
      ['/api/webhooks/payments'],
      ['/webhooks/payments'],
    ],
    'URI versioning under a global prefix': [
      (app) =>
        app.setGlobalPrefix('api').enableVersioning({ type: uri, defaultVersion: ['1', '2'] }),
      ['/api/webhooks/payments'],
      ['/api/v1/webhooks/payments', '/v1/api/webhooks/payments'],
    ],
    'header versioning': [
      (app) =>
        app.enableVersioning({ type: VersioningType.HEADER, header: 'X-V', defaultVersion: '1' }),
      ['/webhooks/payments'],
      [],
    ],
  };
const PATH_SETUPS = ADAPTER_OPTIONS.flatMap((server) =>
  Object.entries(PATHS).map(([title, [main, good, gone]]) => ({
    ...server,
    title,
    main,
    good,
    gone,
  })),
);

describe.each(PATH_SETUPS)(
  'WH-12 $title on $adapter with $option',
  ({ adapter, option, main, good, gone }) => {
    it('WH-12 the module receives webhook requests at the documented path only, with any version header', async () => {
      await using app = await WebhookApplication.start({
        adapter: ADAPTERS[adapter]!(),
        nest: BODY_OPTIONS[option]!,
        controllers: [Cats],
        main: async (app) => void (await main(app)),
      });
      const logged = app.log.matching(/Webhook route: POST/);
      expect(logged[0]).toContain(good[0]);
      for (const path of good) {
        const versions = { 'X-V': '2', Accept: 'application/json;v=3' };
        expect(await app.send(signedWebhook(COMPANY), { path })).toMatchObject({ status: 200 });
        const response = await app.send(signedWebhook(COMPANY), { path, headers: versions });
        expect(response).toMatchObject({ status: 200 });
      }
      for (const path of gone) {
        expect(await app.send(signedWebhook(COMPANY), { path })).toMatchObject({ status: 404 });
      }
    });
  },
);
