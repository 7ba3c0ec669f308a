import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  createParamDecorator,
  Get,
  Injectable,
  Module,
  Post,
  RequestMethod,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  Version,
} from '@nestjs/common';
import type { INestApplication, INestApplicationContext, Type } from '@nestjs/common';
import {
  ApplicationConfig,
  BaseExceptionFilter,
  DiscoveryModule,
  DiscoveryService,
  HttpAdapterHost,
  ModulesContainer,
  NestFactory,
  RouterModule,
} from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  beforeBodyParsers,
  BODY_PARAM,
  CUSTOM_PARAM,
  declaredRoute,
  emptyFastifyBody,
  expressPath,
  FILTERS,
  globalPrefixOf,
  GUARDS,
  httpAdapterOf,
  INTERCEPTORS,
  metadataList,
  PIPES,
  ROUTE_PARAMS,
} from './nest-internals.js';
import type { NestHost } from './nest-internals.js';

class Guard {
  canActivate = () => true;
}
class Interceptor {
  intercept = (_context: unknown, next: { handle(): never }) => next.handle();
}
const Custom = createParamDecorator(() => 'custom');

@Controller(['a', 'b'])
@UseGuards(Guard)
class Routes {
  @Post(['x', 'y'])
  @Version('2')
  @UsePipes(ValidationPipe)
  @UseInterceptors(Interceptor)
  @UseFilters(BaseExceptionFilter)
  receive(this: void, @Body() _body: unknown, @Custom() custom: unknown) {
    return custom;
  }

  @Get()
  read() {}
}

@Module({ imports: [DiscoveryModule], controllers: [Routes] })
class RoutesModule {}
@Module({
  imports: [RoutesModule, RouterModule.register([{ path: 'admin', module: RoutesModule }])],
})
class AppModule {}

const open: INestApplicationContext[] = [];
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
});

async function create(root: Type = AppModule, adapter = new ExpressAdapter()) {
  const app = await NestFactory.create(root, adapter, { logger: false, abortOnError: false });
  open.push(app);
  return app;
}

function hostOf(app: INestApplication, type: Type): NestHost {
  const discovery = app.get(DiscoveryService, { strict: false });
  const hosts = [...discovery.getProviders(), ...discovery.getControllers()];
  return hosts.find(({ metatype }) => metatype === type)!;
}

const receive = Routes.prototype.receive;

describe("Nest's metadata", () => {
  it('Nest stores guards, pipes, interceptors and filters under known keys', () => {
    expect(metadataList(GUARDS, Routes)).toEqual([Guard]);
    expect(metadataList(PIPES, receive)).toEqual([ValidationPipe]);
    expect(metadataList(INTERCEPTORS, receive)).toEqual([Interceptor]);
    expect(metadataList(FILTERS, receive)).toEqual([BaseExceptionFilter]);
    expect(metadataList(GUARDS, receive)).toEqual([]);
  });

  it('Nest stores the parameters of a method under a key with their number and kind', () => {
    const params = Reflect.getMetadata(ROUTE_PARAMS, Routes, 'receive') as object;
    const keys = Object.keys(params);
    // The key of a decorator made with createParamDecorator() begins with random characters.
    expect(keys.filter((key) => !key.includes(CUSTOM_PARAM))).toEqual([`${BODY_PARAM}:0`]);
    expect(keys).toHaveLength(2);
  });

  it('declaredRoute() reads paths, version and method of a route, and the path of its module', async () => {
    const app = await create();
    const { applicationId } = app.get(ModulesContainer, { strict: false });
    const host = hostOf(app, Routes);
    expect(declaredRoute(host, receive, applicationId)).toEqual({
      method: RequestMethod.POST,
      modulePath: '/admin',
      controllerPaths: ['a', 'b'],
      methodPaths: ['x', 'y'],
      version: '2',
      guards: [Guard],
    });
    expect(declaredRoute(host, Routes, applicationId).method).toBeUndefined();
  });

  it('globalPrefixOf() returns no prefix for a route whose path and method are excluded from the global prefix', async () => {
    const app = await create();
    app.setGlobalPrefix('v1', { exclude: [{ path: 'hooks', method: RequestMethod.POST }] });
    const config = app.get(ApplicationConfig, { strict: false });
    const prefix = (path: string, method = RequestMethod.POST) =>
      globalPrefixOf(config, path, method);
    expect(prefix('/hooks')).toBe('');
    expect(prefix('/hooks', RequestMethod.GET)).toBe('v1');
    expect(prefix('/other')).toBe('v1');
  });
});

describe('HttpAdapterHost', () => {
  it('httpAdapterOf() is undefined in an application without HTTP', async () => {
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
    open.push(app);
    expect(httpAdapterOf(app.get(HttpAdapterHost))).toBeUndefined();
  });

  it('beforeBodyParsers() runs before Nest mounts its body parsers', async () => {
    const order: string[] = [];
    class Adapter extends ExpressAdapter {
      override registerParserMiddleware(prefix?: string, rawBody?: boolean) {
        order.push('parsers');
        super.registerParserMiddleware(prefix, rawBody);
      }
    }
    @Injectable()
    class Mounting {
      constructor(host: HttpAdapterHost) {
        beforeBodyParsers(host, () => order.push('mounted'));
      }
    }
    Reflect.defineMetadata('design:paramtypes', [HttpAdapterHost], Mounting);
    @Module({ providers: [Mounting] })
    class MountingModule {}
    await (await create(MountingModule, new Adapter())).init();
    expect(order).toEqual(['mounted', 'parsers']);
  });

  it('expressPath() converts the wildcards of Express 4', () => {
    expect(expressPath(new ExpressAdapter(), '/a/*')).toMatch(/^\/a\/\{?\*\w+\}?$/);
  });
});

describe('Fastify', () => {
  it.each([0, 7])(
    'Fastify parses {} from emptyFastifyBody() in place of a body of %i bytes',
    async (length) => {
      const adapter = new FastifyAdapter();
      const fastify = adapter.getInstance();
      fastify.post('/', {
        preParsing: (request, _reply, payload, done) => {
          payload.resume();
          done(null, emptyFastifyBody(request.headers, length) as never);
        },
        handler: ({ body }) => ({ body }),
      });
      const payload = 'x'.repeat(length);
      const headers = { 'content-type': 'application/json', 'content-length': String(length) };
      const answer = await fastify.inject({ method: 'POST', url: '/', headers, payload });
      expect(answer.json()).toEqual({ body: {} });
      expect(await text(emptyFastifyBody({}, length))).toBe('{}');
    },
  );
});
