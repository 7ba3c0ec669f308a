import { Inject, Injectable } from '@nestjs/common';
import {
  ApplicationConfig,
  ContextIdFactory,
  ExternalContextCreator,
  ModuleRef,
} from '@nestjs/core';
import type { ContextId, DiscoveryService, NestContainer } from '@nestjs/core';
import { HANDLER_PARAMS } from './on-payment-event.decorator.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';

/** A provider or controller that carries handlers, as Nest's discovery gives it. */
export type HandlerHost = ReturnType<DiscoveryService['getProviders']>[number];

type Invoke = (event: PaymentEvent, context: PaymentEventContext) => Promise<unknown>;

/** `ExecutionContext.getType()` of guards, interceptors and filters on a payment handler. */
export const PAYMENTS_CONTEXT = 'payments';

/**
 * Makes a handler's method callable the way Nest calls a route: with the guards, pipes, interceptors and
 * filters that stand on the method or its class, and, in request scope, on an instance of its own.
 */
@Injectable()
export class HandlerInvoker {
  readonly #contexts: ExternalContextCreator;

  constructor(@Inject(ModuleRef) private readonly moduleRef: ModuleRef) {
    // The application's global guards and interceptors are made for HTTP requests: one that looks for a
    // session would refuse every event. So Nest's own machinery is given the same container with an empty
    // application configuration. `container` is protected on ModuleRef; there is no public way to it.
    const container = (moduleRef as unknown as { container: NestContainer }).container;
    const isolated = Object.create(container, {
      applicationConfig: { value: new ApplicationConfig() },
    }) as NestContainer;
    this.#contexts = ExternalContextCreator.fromContainer(isolated);
  }

  /** A function that runs `method` of the host for one event. */
  bind(host: HandlerHost, method: string, scoped: boolean): Invoke {
    if (scoped) return this.#bindScoped(host, method);
    const run = this.#create(host.instance as object, method);
    return async (event, context) => run(event, context);
  }

  #bindScoped(host: HandlerHost, method: string): Invoke {
    return async (event, context) => {
      const contextId = ContextIdFactory.create();
      // What an instance asks for under REQUEST.
      this.moduleRef.registerRequestByContextId({ event, context }, contextId);
      const instance: object = await this.moduleRef.resolve(host.token, contextId, {
        strict: false,
      });
      return this.#create(instance, method, contextId, host.id)(event, context);
    };
  }

  #create(instance: object, method: string, contextId?: ContextId, inquirerId?: string): Invoke {
    const callback = (instance as Record<string, (...args: unknown[]) => unknown>)[method]!;
    return this.#contexts.create(
      instance,
      callback,
      method,
      HANDLER_PARAMS,
      {
        exchangeKeyForValue: (type: number, _data: unknown, args: unknown[]) =>
          args[type === 3 ? 0 : 1],
      },
      contextId,
      inquirerId,
      undefined,
      PAYMENTS_CONTEXT,
    ) as Invoke;
  }
}
