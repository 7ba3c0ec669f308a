import { Injectable } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core';
import { ModuleLogger } from '../errors/module-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import {
  FILTERS,
  GUARDS,
  hasEnhancer,
  INTERCEPTORS,
  isScoped,
  metadataList,
  PIPES,
  scopedPrototype,
} from '../nest-internals.js';
import type { NestHost } from '../nest-internals.js';
import { bindHandler } from './handler-invoker.js';
import { defaultName, HandlerRegistry } from './handler-registry.js';
import { DECORATED, ON_PAYMENT_EVENT } from './on-payment-event.decorator.js';
import type { OnPaymentEventMetadata } from './on-payment-event.decorator.js';
import { isObject } from './payment-event.js';

export const NO_HANDLER =
  'This application has no payment handler, so it stores events and runs nothing.';
export const ADD_HANDLER =
  'Put @OnPaymentEvent(…) on a method of a provider or controller, and list its class in a module that the application ' +
  'imports.';

/** Finds every method that is decorated with `@OnPaymentEvent`, on the application's providers and controllers. */
@Injectable()
export class HandlerExplorer {
  readonly #logger = new ModuleLogger('PaymentHandlers');
  /** The prototypes of all providers and controllers, and the prototypes that these inherit from. */
  readonly #provided = new Set<unknown>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly moduleRef: ModuleRef,
    private readonly registry: HandlerRegistry,
  ) {}

  /**
   * Adds all handlers to the registry. Call this method once, after Nest has initialised every module.
   *
   * @throws PaymentsError `handlers_invalid` if two handlers have the same name, or if Nest would never run a handler
   *   or one of its guards, pipes, interceptors or filters.
   */
  explore(): void {
    // Instances seen so far. Two providers may have the same instance, for example if a factory returns another
    // provider.
    const seen = new Set<object>();
    const hosts = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    for (const host of hosts) {
      if (host.isAlias) continue;
      const scoped = isScoped(host);
      const identity: unknown = scoped ? host : host.instance;
      const prototype = scoped ? scopedPrototype(host) : instancePrototype(host.instance);
      if (!isObject(prototype) || !isObject(identity) || seen.has(identity)) continue;
      seen.add(identity);
      for (let one: unknown = prototype; one; one = Object.getPrototypeOf(one)) {
        this.#provided.add(one);
      }
      this.#exploreHost(host, prototype, scoped);
    }
  }

  /** Returns the decorated methods, as `Class.method`, that never run because no provider has their class. */
  unprovided(): string[] {
    return [...DECORATED]
      .filter(([prototype]) => !this.#provided.has(prototype))
      .flatMap(([{ constructor }, methods]) =>
        [...methods].map((method) => `${constructor.name}.${method}`),
      );
  }

  /**
   * Logs each handler of the registry, including the handler of the option `relay`. Logs a warning if there are no
   * handlers.
   */
  logHandlers(): void {
    for (const { name, patterns } of this.registry.all()) {
      this.#logger.log(`Payment handler ${name}: ${patterns.join(', ')}`, { handler: name });
    }
    if (this.registry.all().length === 0) this.#logger.warn(`${NO_HANDLER} ${ADD_HANDLER}`);
  }

  #exploreHost(host: NestHost, prototype: object, scoped: boolean): void {
    for (const method of this.scanner.getAllMethodNames(prototype)) {
      const callback = (prototype as Record<string, unknown>)[method];
      if (typeof callback !== 'function') continue;
      const className = (prototype.constructor as { name?: unknown } | undefined)?.name;
      const owner = typeof className === 'string' && className !== '' ? className : nameOf(host);
      const metadata = Reflect.getOwnMetadata(ON_PAYMENT_EVENT, callback) as
        OnPaymentEventMetadata | undefined;
      if (metadata === undefined) {
        assertNotReplaced(prototype, method, owner);
        continue;
      }
      assertEnhancers(host, prototype, method, owner);
      this.registry.add({
        name: metadata.name ?? defaultName(metadata.patterns, method),
        source: `${owner}.${method} (${host.host?.name ?? 'no module'})`,
        patterns: metadata.patterns,
        data: metadata.data,
        schema: metadata.schema,
        options: metadata,
        invoke: bindHandler(this.moduleRef, host, method, scoped),
      });
    }
  }
}

/** Reflect keys of `@UseGuards()` and similar decorators, each with the method that Nest calls on such an enhancer. */
const ENHANCERS: ReadonlyMap<string, string> = new Map([
  [GUARDS, 'canActivate'],
  [PIPES, 'transform'],
  [INTERCEPTORS, 'intercept'],
  [FILTERS, 'catch'],
]);

/**
 * Checks that Nest has an instance of every guard, pipe, interceptor and filter that a decorator of the handler names
 * as a class. Nest creates these instances when it reads the class of a provider. Nest does not read the class of a
 * provider that is a value or made by a factory, and silently skips an enhancer without an instance. A handler without
 * its guard would run for every event, so the application does not boot.
 *
 * @throws PaymentsError `handlers_invalid`. The message names the guard, pipe, interceptor or filter, and the fix.
 */
function assertEnhancers(host: NestHost, prototype: object, method: string, owner: string): void {
  const callback = (prototype as Record<string, object>)[method]!;
  for (const [key, call] of ENHANCERS) {
    const enhancers = [...metadataList(key, prototype.constructor), ...metadataList(key, callback)];
    const missing = enhancers.find(
      (enhancer) =>
        typeof enhancer === 'function' &&
        !(call in enhancer) &&
        !hasEnhancer(host, enhancer as Type),
    );
    if (missing === undefined) continue;
    const { name } = missing as { name: string };
    throw new PaymentsError(
      'handlers_invalid',
      `${name} is applied to the payment handler ${owner}.${method} and would never run. Nest creates no instance of ` +
        `${name} if ${owner} is provided as a value or by a factory. Older releases of Nest create none for a class ` +
        `under another token. Provide the class ${owner} itself, or pass an instance: new ${name}(…).`,
    );
  }
}

/** @throws PaymentsError if a decorator above `@OnPaymentEvent` replaced the method. */
function assertNotReplaced(prototype: object, method: string, owner: string): void {
  let declaring: object | null = prototype;
  while (declaring !== null && !Object.hasOwn(declaring, method)) {
    declaring = Object.getPrototypeOf(declaring) as object | null;
  }
  if (declaring === null || !Reflect.hasOwnMetadata(ON_PAYMENT_EVENT, declaring, method)) return;
  throw new PaymentsError(
    'handlers_invalid',
    `A decorator above @OnPaymentEvent on ${owner}.${method} replaced the method and dropped its metadata, so the ` +
      'handler would never run. Put @OnPaymentEvent, guards, pipes, interceptors and filters above that decorator.',
  );
}

function instancePrototype(instance: unknown): unknown {
  return isObject(instance) ? Object.getPrototypeOf(instance) : undefined;
}

function nameOf({ name }: NestHost): string {
  return typeof name === 'function' ? (name as { name: string }).name : String(name);
}
