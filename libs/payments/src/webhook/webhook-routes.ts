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
import { declaredRoute, expressPath, globalPrefixOf, httpAdapterOf } from '../nest-internals.js';
import type { DeclaredRoute, NestHost } from '../nest-internals.js';
import { WebhookGuard } from './webhook.guard.js';
import { WEBHOOK_PATH } from './webhook-options.js';

/** A method of a controller that the guard protects. */
interface GuardedRoute extends DeclaredRoute {
  readonly method: RequestMethod;
}

/** A path pattern, and which of its groups is the company; 0 for none. */
interface Matcher {
  readonly regexp: RegExp;
  readonly company: number;
}

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
    private readonly config: ApplicationConfig,
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly modules: ModulesContainer,
    private readonly host: HttpAdapterHost,
  ) {}

  /** Nest has mapped its routes by now, so prefix and versioning are what they will be. */
  onModuleInit(): void {
    const adapter = httpAdapterOf(this.host);
    // Only Express needs matchers: on Fastify, the hook is added to the routes themselves.
    if (!adapter || adapter.getType() === 'fastify') return;
    this.#matchers = this.paths().map((path) => {
      const { regexp, keys } = pathToRegexp(expressPath(adapter, path));
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

  #guardedRoutes(host: NestHost): GuardedRoute[] {
    const { metatype } = host;
    if (typeof metatype !== 'function') return [];
    const prototype = metatype.prototype as Record<string, unknown>;
    return this.scanner.getAllMethodNames(prototype).flatMap((name) => {
      const handler = prototype[name] as object;
      const route = declaredRoute(host, handler, this.modules.applicationId);
      const { method, guards } = route;
      if (method !== RequestMethod.POST && method !== RequestMethod.ALL) return [];
      return guards.some(isWebhookGuard) ? [{ ...route, method }] : [];
    });
  }

  #pathsOf(route: GuardedRoute): string[] {
    const { modulePath, controllerPaths, methodPaths, method } = route;
    return this.#versionPrefixes(route.version).flatMap((version) =>
      controllerPaths.flatMap((controllerPath) =>
        methodPaths.map((methodPath) =>
          this.#withPrefix(join(modulePath, controllerPath, methodPath), version, method),
        ),
      ),
    );
  }

  #versionPrefixes(declared: DeclaredRoute['version']): string[] {
    const versioning = this.config.getVersioning();
    if (versioning?.type !== VersioningType.URI) return [''];
    const prefix = versioning.prefix === false ? '' : (versioning.prefix ?? 'v');
    return [declared ?? versioning.defaultVersion ?? VERSION_NEUTRAL]
      .flat()
      .map((version) => (version === VERSION_NEUTRAL ? '' : `/${prefix}${String(version)}`));
  }

  #withPrefix(path: string, version: string, method: RequestMethod): string {
    return join(globalPrefixOf(this.config, path, method), version, path);
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

/** `/a/b` of `a`, `/`, `b/`. */
function join(...parts: unknown[]): string {
  const segments = parts.flatMap((part) => (typeof part === 'string' ? part.split('/') : []));
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
}
