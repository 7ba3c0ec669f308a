import { Injectable } from '@nestjs/common';
import type { OnModuleInit, Type } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { ModuleRef } from '@nestjs/core';

/*
 * Code that relies on undocumented behaviour of Nest, its packages or Fastify. Checked with @nestjs/core 11.1.4
 * and 12.5.1, @nestjs/throttler 5.2.0 and 6.7.1, and Fastify 5.
 */

/**
 * Injection token and metadata key of @nestjs/throttler. The decorator SkipThrottle() is not used, because the console
 * would then depend on @nestjs/throttler.
 */
const THROTTLER_OPTIONS = 'THROTTLER:MODULE_OPTIONS';
const THROTTLER_SKIP = 'THROTTLER:SKIP';

type Throttlers = readonly { readonly name?: string }[];

/**
 * Exempts the console's controllers from all throttlers of the application. An open console sends a request every 2
 * seconds, which exceeds most limits.
 */
export class ThrottlerExemption implements OnModuleInit {
  constructor(
    private readonly modules: ModuleRef,
    private readonly controllers: readonly Type[],
  ) {}

  /** Runs at this stage of the boot, because the options of `ThrottlerModule.forRootAsync()` are not known earlier. */
  onModuleInit(): void {
    for (const { name = 'default' } of this.#throttlers()) {
      for (const controller of this.controllers) {
        Reflect.defineMetadata(THROTTLER_SKIP + name, true, controller);
      }
    }
  }

  #throttlers(): Throttlers {
    try {
      return this.modules
        .get<Throttlers | { throttlers: Throttlers }>(THROTTLER_OPTIONS, {
          strict: false,
          each: true,
        })
        .flatMap((options) => ('throttlers' in options ? options.throttlers : options));
    } catch {
      // The application has no throttler.
      return [];
    }
  }
}

/** The parts of a Fastify instance that the console uses. The package does not depend on Fastify. */
interface FastifyLike {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
  hasRoute(route: { method: string; url: string }): boolean;
  route(route: FastifyRoute): void;
  readonly initialConfig: {
    readonly ignoreTrailingSlash?: boolean;
    readonly routerOptions?: { readonly ignoreTrailingSlash?: boolean };
  };
}
interface FastifyRoute {
  readonly method: string | string[];
  readonly url: string;
  readonly handler: object;
}

const TRAILING_SLASH = Symbol('PAYMENTS_CONSOLE_TRAILING_SLASH');

/** Makes a route respond at its path with and without a trailing slash. */
export const AllowTrailingSlash = (): MethodDecorator => (_target, _name, descriptor) => {
  Reflect.defineMetadata(TRAILING_SLASH, true, descriptor.value as object);
};

/**
 * On Fastify, adds a second route with a trailing slash for each route that {@link AllowTrailingSlash} marks. Nest
 * removes the trailing slash from every path. Express responds to both paths of such a route; Fastify does not. Nest
 * copies the metadata of a method to the handler of its route.
 */
@Injectable()
export class TrailingSlashRoutes {
  constructor(host: HttpAdapterHost) {
    host.init$.subscribe(() => {
      // An application without HTTP has no adapter.
      const adapter: HttpAdapterHost['httpAdapter'] | undefined = host.httpAdapter;
      if (adapter?.getType() !== 'fastify') return;
      const fastify = adapter.getInstance<FastifyLike>();
      const { ignoreTrailingSlash, routerOptions } = fastify.initialConfig;
      if (ignoreTrailingSlash || routerOptions?.ignoreTrailingSlash) return;
      fastify.addHook('onRoute', ({ method, url, handler }) => {
        if (method !== 'GET' || !Reflect.getMetadata(TRAILING_SLASH, handler)) return;
        const route = { method, url: `${url}/`, handler };
        // Each registration of the console adds this hook, so the route may already exist.
        if (!url.endsWith('/') && !fastify.hasRoute(route)) fastify.route(route);
      });
    });
  }
}
