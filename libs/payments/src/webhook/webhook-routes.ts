import { Inject, Injectable, RequestMethod, VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import {
  ApplicationConfig,
  DiscoveryService,
  HttpAdapterHost,
  MetadataScanner,
  ModulesContainer,
} from '@nestjs/core';
import { pathToRegexp } from 'path-to-regexp';
import { DEFAULT_COMPANY } from '../companies/company.js';
import { isCompanyId } from '../companies/resolve-company.js';
import { WebhookGuard } from './webhook.guard.js';
import { WEBHOOK_PATH } from './webhook-options.js';

/** A method of a controller that the guard protects. */
interface GuardedRoute {
  readonly host: ControllerHost;
  readonly handler: object;
  readonly method: RequestMethod;
}

/** A path pattern, and which of its groups is the company; 0 for none. */
interface Matcher {
  readonly regexp: RegExp;
  readonly company: number;
}

type ControllerHost = ReturnType<DiscoveryService['getControllers']>[number];

/**
 * Finds the routes that receive deliveries: the endpoint's, and every route that `WebhookGuard` protects. Call it at run
 * time only: global prefix and versioning are set after the module is created.
 */
@Injectable()
export class WebhookRoutes implements OnModuleInit {
  #matchers: Matcher[] = [];
  #guarded: GuardedRoute[] | null = null;

  constructor(
    @Inject(WEBHOOK_PATH) private readonly endpoint: string | null,
    @Inject(ApplicationConfig) private readonly config: ApplicationConfig,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
  ) {}

  /** Nest has mapped its routes by now, so prefix and versioning are what they will be. */
  onModuleInit(): void {
    const adapter: HttpAdapterHost['httpAdapter'] | null = this.host.httpAdapter;
    // Only Express needs matchers: on Fastify, the hook is added to the routes themselves.
    if (!adapter || adapter.getType() === 'fastify') return;
    this.#matchers = this.paths().map((path) => {
      // Nest turns the wildcards of older versions into those of path-to-regexp.
      const { regexp, keys } = pathToRegexp(adapter.normalizePath?.(path) ?? path);
      return { regexp, company: keys.findIndex(({ name }) => name === 'company') + 1 };
    });
  }

  /** The endpoint's paths, with the global prefix: for the company `default`, and for a named one. */
  endpointPaths(): string[] {
    if (this.endpoint === null) return [];
    const path = this.#withPrefix(this.endpoint, '', RequestMethod.POST);
    return [path, `${path}/:company`];
  }

  /** The path patterns of all routes that receive deliveries. */
  paths(): string[] {
    // Searched once, since Fastify's hook calls this for every route of the application.
    this.#guarded ??= this.discovery.getControllers().flatMap((host) => this.#guardedRoutes(host));
    return [...this.endpointPaths(), ...this.#guarded.flatMap((route) => this.#pathsOf(route))];
  }

  /**
   * The company that a request's path names, `default` if it names none; `undefined` if the path is none of them, as no
   * path is before the application is initialised. The company may be any path segment.
   */
  companyIn(path: string): string | undefined {
    let company: string | undefined;
    for (const matcher of this.#matchers) {
      const match = matcher.regexp.exec(path);
      if (match === null) continue;
      company = decoded(match[matcher.company || match.length] ?? DEFAULT_COMPANY);
      // Several patterns may match. Express decides by their order, which is not known here.
      if (isCompanyId(company)) break;
    }
    return company;
  }

  #guardedRoutes(host: ControllerHost): GuardedRoute[] {
    const { metatype } = host;
    if (typeof metatype !== 'function') return [];
    const prototype = metatype.prototype as Record<string, unknown>;
    return this.scanner.getAllMethodNames(prototype).flatMap((name) => {
      const handler = prototype[name] as object;
      const method: unknown = Reflect.getMetadata('method', handler);
      if (method !== RequestMethod.POST && method !== RequestMethod.ALL) return [];
      const guards = [...list('__guards__', metatype), ...list('__guards__', handler)];
      if (!guards.some(isWebhookGuard)) return [];
      return [{ host, handler, method }];
    });
  }

  #pathsOf({ host: { metatype, host }, handler, method }: GuardedRoute): string[] {
    const modulePath: unknown =
      host &&
      (Reflect.getMetadata(`__module_path__${this.modules.applicationId}`, host.metatype) ??
        Reflect.getMetadata('__module_path__', host.metatype));
    return this.#versionPrefixes(metatype as object, handler).flatMap((version) =>
      list('path', metatype as object).flatMap((controllerPath) =>
        list('path', handler).map((methodPath) =>
          this.#withPrefix(join(modulePath, controllerPath, methodPath), version, method),
        ),
      ),
    );
  }

  #versionPrefixes(controller: object, handler: object): string[] {
    const versioning = this.config.getVersioning();
    if (versioning?.type !== VersioningType.URI) return [''];
    const declared: unknown =
      Reflect.getMetadata('__version__', handler) ??
      Reflect.getMetadata('__version__', controller) ??
      versioning.defaultVersion ??
      VERSION_NEUTRAL;
    const prefix = versioning.prefix === false ? '' : (versioning.prefix ?? 'v');
    return [declared]
      .flat()
      .map((version) => (version === VERSION_NEUTRAL ? '' : `/${prefix}${String(version)}`));
  }

  /** Exclusions name paths without their version, and Nest applies those for the method of the route. */
  #withPrefix(path: string, version: string, method: RequestMethod): string {
    const { exclude = [] } = this.config.getGlobalPrefixOptions();
    const excluded = exclude.some(
      ({ requestMethod, pathRegex }) =>
        (requestMethod === RequestMethod.ALL || requestMethod === method) && pathRegex.test(path),
    );
    return join(excluded ? '' : this.config.getGlobalPrefix(), version, path);
  }
}

function isWebhookGuard(guard: unknown): boolean {
  const type: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return type === WebhookGuard.prototype || type instanceof WebhookGuard;
}

function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** A metadata value that may be one or many. */
function list(key: string, target: object): unknown[] {
  const value: unknown = Reflect.getMetadata(key, target);
  return value === undefined ? [] : [value].flat();
}

/** `/a/b` of `a`, `/`, `b/`. */
function join(...parts: unknown[]): string {
  const segments = parts.flatMap((part) => (typeof part === 'string' ? part.split('/') : []));
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
}
