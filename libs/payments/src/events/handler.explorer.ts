import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { HandlerInvoker } from './handler.invoker.js';
import type { HandlerHost } from './handler.invoker.js';
import { HandlerRegistry } from './handler.registry.js';
import { ON_PAYMENT_EVENT } from './on-payment-event.decorator.js';
import type { OnPaymentEventMetadata } from './on-payment-event.decorator.js';

/** Finds every method under `@OnPaymentEvent` on the application's providers and controllers. */
@Injectable()
export class HandlerExplorer {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Inject(HandlerInvoker) private readonly invoker: HandlerInvoker,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
  ) {}

  /**
   * Fills the registry. To be called once, when every module is initialised.
   *
   * @throws PaymentsError `handlers_invalid` where two handlers share a name.
   */
  explore(): void {
    const seen = new Set<object>();
    const hosts = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    for (const host of hosts) {
      // An alias (useExisting) is the same object again, and so may be a factory's answer.
      if (host.isAlias) continue;
      const scoped = !host.isDependencyTreeStatic() || host.isTransient;
      const identity: unknown = scoped ? host : host.instance;
      const prototype: unknown = scoped
        ? (host.metatype as { prototype?: unknown } | null)?.prototype
        : instancePrototype(host.instance);
      if (!isObject(prototype) || !isObject(identity) || seen.has(identity)) continue;
      seen.add(identity);
      this.#exploreHost(host, prototype, scoped);
    }
  }

  #exploreHost(host: HandlerHost, prototype: object, scoped: boolean): void {
    for (const method of this.scanner.getAllMethodNames(prototype)) {
      const callback = (prototype as Record<string, unknown>)[method];
      if (typeof callback !== 'function') continue;
      const metadata = Reflect.getOwnMetadata(ON_PAYMENT_EVENT, callback) as
        OnPaymentEventMetadata | undefined;
      if (metadata === undefined) continue;
      const owner = (prototype.constructor as { name?: string }).name ?? String(host.name);
      this.registry.add({
        name: metadata.name ?? `${owner}.${method}`,
        patterns: metadata.patterns,
        ...(metadata.data && { data: metadata.data }),
        invoke: this.invoker.bind(host, method, scoped),
      });
    }
  }
}

function instancePrototype(instance: unknown): unknown {
  return isObject(instance) ? Object.getPrototypeOf(instance) : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
