import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module, Scope, UseGuards } from '@nestjs/common';
import type { INestApplication, Type } from '@nestjs/common';
import {
  DiscoveryModule,
  DiscoveryService,
  ModuleRef,
  ModulesContainer,
  NestFactory,
} from '@nestjs/core';
import {
  hasEnhancer,
  hasShutdownHooks,
  importersOfSeveral,
  isolatedContexts,
  isScoped,
  moduleRefOf,
  scopedPrototype,
  stopFirst,
} from './nest-internals.js';
import type { NestHost } from './nest-internals.js';

class Guard {
  canActivate = () => true;
}
@Controller()
@UseGuards(Guard)
class Routes {
  @Get()
  read(this: void, ...values: unknown[]) {
    return values;
  }
}

@Injectable({ scope: Scope.REQUEST })
class PerRequest {}
@Injectable()
class Shared {
  onModuleDestroy() {
    stopped.push('Shared');
  }
}
const stopped: string[] = [];

@Module({ imports: [DiscoveryModule], controllers: [Routes], providers: [PerRequest, Shared] })
class RoutesModule {}

const open: INestApplication[] = [];
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
});

async function create(root: Type = RoutesModule) {
  const app = await NestFactory.create(root, { logger: false, abortOnError: false });
  open.push(app);
  return app;
}

function hostOf(app: INestApplication, type: Type): NestHost {
  const discovery = app.get(DiscoveryService, { strict: false });
  const hosts = [...discovery.getProviders(), ...discovery.getControllers()];
  return hosts.find(({ metatype }) => metatype === type)!;
}

describe('providers and modules of Nest', () => {
  it('isScoped() and scopedPrototype() find scoped providers and their classes', async () => {
    const app = await create();
    expect(isScoped(hostOf(app, PerRequest))).toBe(true);
    expect(scopedPrototype(hostOf(app, PerRequest))).toBe(PerRequest.prototype);
    expect(isScoped(hostOf(app, Shared))).toBe(false);
  });

  it('hasEnhancer() and moduleRefOf() find the enhancers and the ModuleRef of the module of a provider', async () => {
    const app = await create();
    const host = hostOf(app, Routes);
    expect(hasEnhancer(host, Guard)).toBe(true);
    expect(hasEnhancer(host, class Other {})).toBe(false);
    expect(moduleRefOf(host).get(Shared, { strict: true })).toBeInstanceOf(Shared);
  });

  it('isolatedContexts() runs a method with its own enhancers, and without global enhancers', async () => {
    const app = await create();
    app.useGlobalGuards({ canActivate: () => false });
    const host = hostOf(app, Routes);
    const contexts = isolatedContexts(app.get(ModuleRef), host);
    const { read } = Routes.prototype;
    const run = contexts.create(host.instance as Routes, read, 'read') as (
      ...values: unknown[]
    ) => Promise<unknown>;
    await expect(run(1, 2)).resolves.toEqual([1, 2]);
  });

  it('stopFirst() makes Nest stop the module first', async () => {
    @Injectable()
    class RootService {
      onModuleDestroy() {
        stopped.push('RootService');
      }
    }
    @Module({ imports: [RoutesModule], providers: [RootService] })
    class RootModule {}
    const order = async (first: boolean) => {
      stopped.length = 0;
      const app = await create(RootModule);
      if (first) stopFirst(app.get(ModulesContainer, { strict: false }), Shared);
      await app.init();
      await app.close();
      return [...stopped];
    };
    expect(await order(false)).toEqual(['RootService', 'Shared']);
    expect(await order(true)).toEqual(['Shared', 'RootService']);
  });

  it('importersOfSeveral() lists importing modules, without the imports that Nest adds for global modules', async () => {
    const shared = (name: string) => ({
      module: { [name]: class {} }[name]!,
      providers: [Shared],
      global: true,
    });
    class Importing {}
    Module({ imports: [shared('One'), shared('Two')] })(Importing);
    class Root {}
    Module({ imports: [Importing] })(Root);
    const several = (await create(Root)).get(ModulesContainer, { strict: false });
    expect(importersOfSeveral(several, Shared)).toEqual(['Importing', 'Importing']);
    const one = (await create()).get(ModulesContainer, { strict: false });
    expect(importersOfSeveral(one, Shared)).toBeUndefined();
  });

  it('hasShutdownHooks() is true after enableShutdownHooks()', async () => {
    const before = hasShutdownHooks();
    const app = await create();
    app.enableShutdownHooks();
    await app.init();
    expect([before, hasShutdownHooks()]).toEqual([false, true]);
  });
});
