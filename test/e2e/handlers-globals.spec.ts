import { expect, it } from '@jest/globals';
import { Catch, Controller, Get, Injectable, Scope } from '@nestjs/common';
import type { ArgumentsHost, CanActivate, NestInterceptor, PipeTransform } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { OnPaymentEvent } from 'nestjs-payments';
import { delivery, onEachAdapter, storedDelivery } from '../support/webhook/handler-application.js';

let asked: string[] = [];

@Injectable()
class NoOne implements CanActivate {
  canActivate(): boolean {
    asked.push('guard');
    return false;
  }
}
@Injectable()
class Nothing implements NestInterceptor {
  intercept(): never {
    asked.push('interceptor');
    throw new Error('a global interceptor');
  }
}
@Injectable()
class Never implements PipeTransform {
  transform(): never {
    asked.push('pipe');
    throw new Error('a global pipe');
  }
}
/** What Express's response and Fastify's reply have in common. */
interface Response {
  status(code: number): { send(): void };
}

@Catch()
class Swallow {
  catch(_: unknown, host: ArgumentsHost): unknown {
    asked.push('filter');
    if (host.getType() === 'http') host.switchToHttp().getResponse<Response>().status(418).send();
    return { swallowed: true };
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

const KINDS = [
  ['a singleton', () => ({ providers: [heir(Injectable())] })],
  [
    'a request-scoped provider',
    () => ({ providers: [heir(Injectable({ scope: Scope.REQUEST }))] }),
  ],
  ['a controller', () => ({ controllers: [heir(Controller('handlers'))] })],
] as const;

function heir(decorate: ClassDecorator): new () => Handlers {
  const Heir = class Heir extends Handlers {};
  decorate(Heir);
  return Heir;
}

onEachAdapter((start) => {
  for (const [kind, metadata] of KINDS) {
    it.each([
      ['APP_GUARD, APP_PIPE, APP_INTERCEPTOR and APP_FILTER', Scope.DEFAULT],
      ['those, in request scope', Scope.REQUEST],
    ])(`WH-19 runs nothing under %s for a handler on ${kind}`, async (_, scope) => {
      asked = [];
      const { providers = [], controllers = [] } = metadata() as {
        providers?: never[];
        controllers?: never[];
      };
      await using app = await start({
        providers: [
          ...providers,
          { provide: APP_GUARD, useClass: NoOne, scope },
          { provide: APP_INTERCEPTOR, useClass: Nothing, scope },
          { provide: APP_PIPE, useClass: Never, scope },
          { provide: APP_FILTER, useClass: Swallow, scope },
        ],
        controllers: [...controllers, Routes],
      });
      await proveNoneRan(app);
    });

    it(`WH-19 runs nothing of useGlobalGuards() and its like for a handler on ${kind}`, async () => {
      asked = [];
      const { providers = [], controllers = [] } = metadata() as {
        providers?: never[];
        controllers?: never[];
      };
      await using app = await start({
        providers,
        controllers: [...controllers, Routes],
        main: (nest) => {
          nest
            .useGlobalGuards(new NoOne())
            .useGlobalInterceptors(new Nothing())
            .useGlobalPipes(new Never())
            .useGlobalFilters(new Swallow());
        },
      });
      await proveNoneRan(app);
    });
  }
});

async function proveNoneRan(app: Parameters<typeof storedDelivery>[0]): Promise<void> {
  handled.length = 0;
  expect(await app.send(delivery({ eventType: 'good' }))).toMatchObject({ status: 200 });
  expect(handled).toEqual(['good']);
  expect(await app.send(delivery({ id: 'e-1', eventType: 'bad' }))).toMatchObject({ status: 503 });
  expect(await storedDelivery(app, 'e-1')).toMatchObject({
    state: 'pending',
    lastError: 'Error: the handler',
  });
  expect(asked).toEqual([]);
  // They do run for routes.
  expect((await fetch(`${app.url}/guarded`)).status).toBe(418);
  expect(asked).toEqual(['guard', 'filter']);
}
