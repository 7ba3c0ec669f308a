import { expect, it } from '@jest/globals';
import { Catch, Controller, Get, Injectable, ValidationPipe } from '@nestjs/common';
import type {
  ArgumentsHost,
  CallHandler,
  CanActivate,
  ExceptionFilter,
  ExecutionContext,
  INestApplication,
  NestInterceptor,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, HttpAdapterHost } from '@nestjs/core';
import { map, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import { ACTION, PATH, consoleOnEachAdapter } from '../../support/console/console-application.js';
import { BODY_OPTIONS } from '../../support/webhook/webhook-application.js';

@Injectable()
class Wrapping implements NestInterceptor {
  intercept(_: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ wrapped: data })));
  }
}

/** An interceptor that fails on responses of other modules. */
@Injectable()
class Meddling implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const response = context.switchToHttp().getResponse<{ header(n: string, v: string): void }>();
    return next.handle().pipe(
      tap((data) => {
        response.header('x-took', '1');
        void (data as { items: unknown[] }).items.length;
      }),
    );
  }
}

@Catch()
class Teapot implements ExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(_: unknown, host: ArgumentsHost): void {
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { teapot: true }, 418);
  }
}

@Injectable()
class Members implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return headers['x-member'] === 'yes';
  }
}

@Controller('cats')
class Cats {
  @Get()
  all(): string[] {
    return ['Tom'];
  }
}

const strict = () =>
  new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true });

const MAINS: Record<string, { providers: object[]; main: (app: INestApplication) => void }> = {
  'declared as providers': {
    providers: [
      { provide: APP_INTERCEPTOR, useClass: Wrapping },
      { provide: APP_INTERCEPTOR, useClass: Meddling },
      { provide: APP_PIPE, useFactory: strict },
      {
        provide: APP_FILTER,
        useFactory: (host: HttpAdapterHost) => new Teapot(host),
        inject: [HttpAdapterHost],
      },
      { provide: APP_GUARD, useClass: Members },
    ],
    main: () => {},
  },
  'set in main.ts': {
    providers: [],
    main: (app) => {
      app.useGlobalInterceptors(new Wrapping(), new Meddling());
      app.useGlobalPipes(strict());
      app.useGlobalFilters(new Teapot(app.get(HttpAdapterHost)));
      app.useGlobalGuards(new Members());
    },
  },
};

consoleOnEachAdapter((start) => {
  it.each(Object.entries(MAINS))(
    'the console applies the global guard, but not the global interceptors, pipes and filters, which are all %s',
    async (_, { providers, main }) => {
      await using app = await start({
        controllers: [Cats],
        providers: providers as never[],
        main,
      });
      const member = { 'x-member': 'yes' };
      await app.deliver({ id: 'e-1' }, 'dead');
      expect(
        await app.merchant.exchange('/cats', { method: 'GET', headers: member }),
      ).toMatchObject({
        status: 418,
      });

      expect((await app.get('', member)).text).toMatch(/^<!doctype html>/i);
      expect((await app.get('/assets/console.js', member)).text).toMatch(/import /);
      const overview = await app.get('/api/overview', member);
      expect(overview).toMatchObject({ status: 200, body: { who: 'ann' } });
      const redriven = await app.post(
        'redrive',
        { events: [{ company: 'default', id: 'e-1' }] },
        { headers: { ...ACTION, ...member } },
      );
      expect(redriven).toMatchObject({ status: 200, body: { events: 1, deliveries: 1 } });

      expect(await app.get('/api/events?limit=no', member)).toMatchObject({
        status: 400,
        body: { error: expect.stringMatching(/"limit"/) },
      });
      expect(await app.get('/assets/none', member)).toMatchObject({
        status: 404,
        body: { error: expect.any(String) },
      });
      // The API responds in its own format; for the page, the application's filter responds.
      expect(await app.get('/api/overview')).toMatchObject({
        status: 403,
        body: { error: 'Forbidden resource' },
        headers: { 'x-frame-options': 'DENY', 'cache-control': 'no-store' },
      });
      expect(await app.get('')).toMatchObject({ status: 418 });
      const errors = app.log.filter((line) => /^(?:error|fatal)/.test(line));
      expect(errors).toEqual([expect.stringContaining('Orders.markPaid failed')]);
    },
  );

  it.each(Object.keys(BODY_OPTIONS))(
    'the console reads the body of an action with %s',
    async (option) => {
      await using app = await start({ nest: BODY_OPTIONS[option]! });
      expect(await app.post('pause', { handler: '*' })).toMatchObject({ status: 200, body: {} });
      const { body } = await app.get('/api/overview');
      expect(body).toMatchObject({ stats: { paused: [{ handler: '*' }] } });
      const malformed = await app.post('pause', '{"handler":');
      expect(malformed.status).toBe(400);
    },
  );

  it.each(Object.keys(BODY_OPTIONS))(
    'the console responds 413 to a body that is too large with %s',
    async (option) => {
      await using app = await start({ nest: BODY_OPTIONS[option]! });
      const body = Array.from({ length: 40 }, () => Buffer.alloc(64 * 1024, ' '));
      expect(await app.post('pause', '', { body })).toMatchObject({ status: 413 });
      expect(await app.get('/api/overview')).toMatchObject({ status: 200 });
    },
  );

  it('the console does not change the response of a guard', async () => {
    const toLogin: CanActivate = {
      canActivate: (context) => {
        context.switchToHttp().getResponse<{ redirect(to: string): void }>().redirect('/login');
        return false;
      },
    };
    await using app = await start({ console: { guards: [toLogin] } });
    for (const path of ['', '/api/overview']) {
      expect(await app.get(path)).toMatchObject({ status: 302, headers: { location: '/login' } });
    }
    expect(app.log.filter((line) => /^(?:error|fatal)/.test(line))).toEqual([]);
  });

  it('the console logs an error of a guard, and its response does not contain the message of the error', async () => {
    const failing: CanActivate = {
      canActivate: () => {
        throw new Error('ldap://10.0.0.7 refused');
      },
    };
    await using app = await start({ console: { guards: [failing] } });
    const response = await app.get('/api/overview');
    expect(response).toMatchObject({
      status: 500,
      body: { error: expect.stringMatching(/See the application's log/) },
    });
    expect(response.text).not.toContain('10.0.0.7');
    expect(app.log.some((line) => line.includes('10.0.0.7'))).toBe(true);
  });

  it('the console does not change other routes of the application', async () => {
    await using app = await start({ controllers: [Cats] });
    expect(await app.merchant.exchange('/cats', { method: 'GET' })).toMatchObject({
      status: 200,
      text: '["Tom"]',
    });
    const { status } = await app.merchant.exchange(`${PATH}/unknown`, { method: 'GET' });
    expect(status).toBe(404);
  });
});
