import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Type } from '@nestjs/common';
import { RequestMethod } from '@nestjs/common';
import {
  ApplicationConfig,
  ExternalContextCreator,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import type { DiscoveryService, HttpAdapterHost, NestContainer } from '@nestjs/core';

/*
 * Everything in this file relies on behaviour that Nest, Express or Fastify do not document. The behaviour was checked
 * with Nest 11.1.4, 11.2.0 and 12.5.1, Express 5 and Fastify 5. nest-internals.spec.ts checks it with the installed
 * releases.
 */

/** A provider or controller, as Nest's discovery returns it. */
export type NestHost = ReturnType<DiscoveryService['getProviders']>[number];

type NestModule = ModulesContainer extends Map<string, infer M> ? M : never;
type HttpAdapter = HttpAdapterHost['httpAdapter'];

/** Reflect keys of `@UseGuards()`, `@UsePipes()`, `@UseInterceptors()` and `@UseFilters()` on a class or a method. */
export const GUARDS = '__guards__';
export const PIPES = '__pipes__';
export const INTERCEPTORS = '__interceptors__';
export const FILTERS = '__exceptionFilters__';

/** Reflect key of the parameter decorators of a method, including those made with `createParamDecorator()`. */
export const ROUTE_PARAMS = '__routeArguments__';
/** Part of the key of each parameter whose decorator was made with `createParamDecorator()`. */
export const CUSTOM_PARAM = '__customRouteArgs__';
/**
 * Nest's number for `@Body()` and, in a message handler, for `@Payload()`. The metadata keys of parameters contain this
 * number.
 */
export const BODY_PARAM = 3;

/** Returns metadata as a list, whether it is one value or a list of values. Empty if there is none. */
export function metadataList(key: string, target: object): unknown[] {
  const value: unknown = Reflect.getMetadata(key, target);
  return value === undefined ? [] : [value].flat();
}

type Version = string | symbol;

export interface DeclaredRoute {
  /** A {@link RequestMethod}; `undefined` if the controller method is not a route. */
  readonly method: unknown;
  readonly modulePath: unknown;
  readonly controllerPaths: readonly unknown[];
  readonly methodPaths: readonly unknown[];
  readonly version: Version | readonly Version[] | undefined;
  readonly guards: readonly unknown[];
}

/** Reads the metadata of a route. `RouterModule` stores the path of a module under a key with the application's id. */
export function declaredRoute(
  { metatype, host }: NestHost,
  handler: object,
  applicationId: string,
): DeclaredRoute {
  const controller = metatype as object;
  const modulePath = (key: string): unknown => host && Reflect.getMetadata(key, host.metatype);
  return {
    method: Reflect.getMetadata('method', handler),
    modulePath: modulePath(`__module_path__${applicationId}`) ?? modulePath('__module_path__'),
    controllerPaths: metadataList('path', controller),
    methodPaths: metadataList('path', handler),
    version: (Reflect.getMetadata('__version__', handler) ??
      Reflect.getMetadata('__version__', controller)) as DeclaredRoute['version'],
    guards: [...metadataList(GUARDS, controller), ...metadataList(GUARDS, handler)],
  };
}

/**
 * Returns the global prefix of a route; empty if the option `exclude` of the prefix contains the route. Nest compares
 * `exclude` with the path without version.
 */
export function globalPrefixOf(
  config: ApplicationConfig,
  path: string,
  method: RequestMethod,
): string {
  const { exclude = [] } = config.getGlobalPrefixOptions();
  const excluded = exclude.some(
    ({ requestMethod, pathRegex }) =>
      (requestMethod === RequestMethod.ALL || requestMethod === method) && pathRegex.test(path),
  );
  return excluded ? '' : config.getGlobalPrefix();
}

/**
 * Returns the HTTP adapter; `undefined` in an application without HTTP, although Nest's type does not allow
 * `undefined`.
 */
export function httpAdapterOf(host: HttpAdapterHost): HttpAdapter | undefined {
  const adapter: HttpAdapter | null | undefined = host.httpAdapter;
  return adapter ?? undefined;
}

/** Calls `mount` as soon as the HTTP adapter exists, before Nest mounts its own body parsers. */
export function beforeBodyParsers(
  host: HttpAdapterHost,
  mount: (adapter: HttpAdapter) => void,
): void {
  host.init$.subscribe(() => {
    const adapter = httpAdapterOf(host);
    if (adapter !== undefined) mount(adapter);
  });
}

/** Replaces the wildcards of Express 4 in a path by those of path-to-regexp 8, as Nest does. */
export function expressPath(adapter: HttpAdapter, path: string): string {
  return adapter.normalizePath?.(path) ?? path;
}

class EmptyObject extends Readable {
  constructor(
    /** Number of bytes that Fastify compares with Content-Length. */
    readonly receivedEncodedLength: number,
  ) {
    super({ autoDestroy: false, emitClose: false });
  }

  override _read(): void {
    this.push('{}');
    this.push(null);
  }
}

/**
 * Returns a stream that replaces a body of `length` bytes that the module has read. A `preParsing` hook of Fastify
 * passes this stream to the parser, because the parser must not parse unverified bytes, and must not wait for a stream
 * that has ended. Changes `headers`: removes a Content-Length of 0, with which Fastify would report a missing body, and
 * makes Content-Type one string.
 */
export function emptyFastifyBody(headers: IncomingHttpHeaders, length: number): Readable {
  if (length === 0) delete headers['content-length'];
  else headers['content-length'] = String(length);
  headers['content-type'] = [headers['content-type']].flat()[0];
  return new EmptyObject(length);
}

/** Whether Nest creates an instance of the host per request (request scope) or per injection (transient scope). */
export function isScoped(host: NestHost): boolean {
  return !host.isDependencyTreeStatic() || host.isTransient;
}

/**
 * Returns the prototype of a scoped provider or controller. If a factory creates the provider, its prototype is known
 * only if the token is the class.
 */
export function scopedPrototype({ inject, metatype, token }: NestHost): unknown {
  const made: unknown = inject ? token : metatype;
  return typeof made === 'function' ? (made.prototype as unknown) : undefined;
}

/** Whether Nest has created the guard, pipe, interceptor or filter `type` for the module of the host. */
export function hasEnhancer({ host }: NestHost, type: Type): boolean {
  return host?.injectables.has(type) ?? false;
}

/** Returns the `ModuleRef` of the host's own module, because another module may have a provider with the same token. */
export function moduleRefOf({ host }: NestHost): ModuleRef {
  return host!.providers.get(ModuleRef)!.instance as ModuleRef;
}

/**
 * Returns a factory. For a method of the host, the factory creates a function that runs the method with the guards,
 * pipes, interceptors and filters of the method and its class. Global guards, pipes, interceptors and filters do not
 * run, because they are written for HTTP requests: for example, a guard that requires a session would reject every
 * event. Therefore, the factory has an empty application configuration.
 *
 * Nest searches for the module of a class among providers only. For a controller, Nest would find no module and skip
 * the guards. Therefore, the factory contains only the module of the host.
 */
export function isolatedContexts(moduleRef: ModuleRef, { host }: NestHost): ExternalContextCreator {
  // The property is protected, and Nest has no public access to the container.
  const { container } = moduleRef as unknown as { container: NestContainer };
  const module = Object.create(host!, { hasProvider: { value: () => true } }) as typeof host;
  const modules = new Map([[host!.token, module]]);
  const isolated = Object.create(container, {
    applicationConfig: { value: new ApplicationConfig() },
    getModules: { value: () => modules },
  }) as NestContainer;
  return ExternalContextCreator.fromContainer(isolated);
}

/**
 * Makes Nest stop the module with this provider first. Nest starts modules by their distance from the root module, the
 * farthest first, and stops them in reverse order; a global module has the largest distance. Without this function,
 * Nest could close the database of a running handler before the handler has ended. This function sets the distance of
 * the module to a value below that of the root module.
 */
export function stopFirst(modules: ModulesContainer, provider: Type): void {
  for (const module of modules.values()) {
    if (module.hasProvider(provider)) module.distance = -1;
  }
}

/**
 * If several modules have the provider, returns the names of the modules that import these modules, one name per
 * import. Otherwise returns `undefined`.
 */
export function importersOfSeveral(
  modules: ModulesContainer,
  provider: Type,
): string[] | undefined {
  const all = [...modules.values()];
  const having = all.filter((module) => module.hasProvider(provider));
  if (having.length < 2) return undefined;
  const importers = having.flatMap((module) => all.filter((other) => imports(other, module)));
  return importers.map(({ metatype }) => metatype.name);
}

/**
 * Whether a module itself imports another module. Nest also adds all global modules to the imports of every module. In
 * this list, the global modules follow the module's own imports, and the first global module is Nest's core module.
 */
function imports(importing: NestModule, imported: NestModule): boolean {
  if (!imported.isGlobal) return importing.imports.has(imported);
  const own = [...importing.imports];
  // Nest's core module is found by its provider, the container, because bundlers may rename the class of the module.
  const end = own.findIndex((module) => module.hasProvider(ModulesContainer));
  return (end === -1 ? own : own.slice(0, end)).includes(imported);
}

/** Whether shutdown hooks are enabled. Nest has no API for this, but listens to SIGTERM if they are enabled. */
export function hasShutdownHooks(): boolean {
  return process.listenerCount('SIGTERM') > 0;
}
