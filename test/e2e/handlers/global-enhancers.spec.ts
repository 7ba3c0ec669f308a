import { expect, it } from '@jest/globals';
import { Catch, Controller, Get, Injectable, Scope } from '@nestjs/common';
import type {
  ArgumentsHost,
  CanActivate,
  NestInterceptor,
  PipeTransform,
  Provider,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { OnPaymentEvent } from 'nestjs-payments';
import type { Setup } from '../../support/webhook/webhook-application.js';
import {
  HOSTS,
  onOneAdapter,
  storedDelivery,
  webhookRequest,
} from '../../support/webhook/handler-application.js';

let called: string[] = [];

@Injectable()
class DenyAll implements CanActivate {
  canActivate(): boolean {
    called.push('guard');
    return false;
  }
}
@Injectable()
class FailingInterceptor implements NestInterceptor {
  intercept(): never {
    called.push('interceptor');
    throw new Error('a global interceptor');
  }
}
@Injectable()
class FailingPipe implements PipeTransform {
  transform(): never {
    called.push('pipe');
    throw new Error('a global pipe');
  }
}
/** The methods that Express's response and Fastify's reply have in common. */
interface Response {
  status(code: number): { send(): void };
}

@Catch()
class HandleAll {
  catch(_: unknown, host: ArgumentsHost): unknown {
    called.push('filter');
    if (host.getType() === 'http') host.switchToHttp().getResponse<Response>().status(418).send();
    return { handled: true };
  }
}

const handled: string[] = [];
class Handlers {
  @OnPaymentEvent('good')
  good(): void {
    handled.push('good');
  }

  @OnPaymentEvent('bad')
  bad(): never {
    throw new Error('the handler');
  }
}

@Controller('guarded')
class Routes {
  @Get()
  get(): string {
    return 'never';
  }
}

const GLOBAL: readonly [how: string, setup: Pick<Setup, 'main' | 'providers'>][] = [
  ['providers', { providers: globalProviders(Scope.DEFAULT) }],
  ['request-scoped providers', { providers: globalProviders(Scope.REQUEST) }],
  [
    'instances in main.ts',
    {
      main: (nest) =>
        void nest
          .useGlobalGuards(new DenyAll())
          .useGlobalInterceptors(new FailingInterceptor())
          .useGlobalPipes(new FailingPipe())
          .useGlobalFilters(new HandleAll()),
    },
  ],
];

function globalProviders(scope: Scope): Provider[] {
  return [
    { provide: APP_GUARD, useClass: DenyAll, scope },
    { provide: APP_INTERCEPTOR, useClass: FailingInterceptor, scope },
    { provide: APP_PIPE, useClass: FailingPipe, scope },
    { provide: APP_FILTER, useClass: HandleAll, scope },
  ];
}

onOneAdapter('global enhancers', (start) => {
  it.each(
    GLOBAL.flatMap(([how, setup]) =>
      HOSTS.map(([kind, declare]) => [how, kind, setup, declare(Handlers)] as const),
    ),
  )(
    'WH-19 the module runs no global guard, interceptor, pipe or filter (%s) for a handler on %s',
    async (_how, _kind, { main, providers = [] }, host) => {
      called = [];
      await using app = await start({
        providers: [...(host.providers ?? []), ...providers],
        controllers: [...(host.controllers ?? []), Routes],
        ...(main && { main }),
      });
      await expectNoneRan(app);
    },
  );
});

async function expectNoneRan(app: Parameters<typeof storedDelivery>[0]): Promise<void> {
  handled.length = 0;
  expect(await app.send(webhookRequest({ eventType: 'good' }))).toMatchObject({ status: 200 });
  expect(handled).toEqual(['good']);
  expect(await app.send(webhookRequest({ id: 'e-1', eventType: 'bad' }))).toMatchObject({
    status: 503,
  });
  expect(await storedDelivery(app, 'e-1')).toMatchObject({
    state: 'pending',
    lastError: 'Error: the handler',
  });
  expect(called).toEqual([]);
  // The global guard and filter run for the application's routes.
  expect((await fetch(`${app.url}/guarded`)).status).toBe(418);
  expect(called).toEqual(['guard', 'filter']);
}
