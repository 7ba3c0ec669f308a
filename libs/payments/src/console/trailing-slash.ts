import { Inject, Injectable } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/** What this file needs of a Fastify instance and its routes; the package does not depend on Fastify. */
interface FastifyLike {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
  hasRoute(route: { method: string; url: string }): boolean;
  route(route: { method: string; url: string; handler: unknown }): void;
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

const WITH_SLASH = Symbol('PAYMENTS_CONSOLE_WITH_SLASH');

/** Marks the route of a page that answers with and without a slash at its end. */
export const alsoWithSlash = (): MethodDecorator => (_target, _name, descriptor) => {
  Reflect.defineMetadata(WITH_SLASH, true, descriptor.value as object);
};

/**
 * Nest takes the slash from the end of every path. Express answers with and without it all the same; of Fastify's
 * routes, the marked ones are given a second one with it.
 */
@Injectable()
export class TrailingSlash implements OnModuleInit {
  readonly #marked = new Map<string, object>();

  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {
    host.init$.subscribe(() => {
      this.#fastify()?.addHook('onRoute', ({ method, url, handler }) => {
        // Nest copies what a method is marked with to what it hands to the adapter.
        if (![method].flat().includes('GET') || !Reflect.getMetadata(WITH_SLASH, handler)) return;
        if (!url.endsWith('/')) this.#marked.set(url, handler);
      });
    });
  }

  /** Nest has mapped its routes by now. */
  onModuleInit(): void {
    const fastify = this.#fastify();
    if (fastify === undefined) return;
    const { ignoreTrailingSlash, routerOptions } = fastify.initialConfig;
    if (ignoreTrailingSlash || routerOptions?.ignoreTrailingSlash) return;
    for (const [path, handler] of this.#marked) {
      const route = { method: 'GET', url: `${path}/` };
      if (!fastify.hasRoute(route)) fastify.route({ ...route, handler });
    }
  }

  #fastify(): FastifyLike | undefined {
    const adapter: HttpAdapterHost['httpAdapter'] | null = this.host.httpAdapter;
    // Absent in an application without HTTP.
    return adapter?.getType() === 'fastify' ? adapter.getInstance<FastifyLike>() : undefined;
  }
}
