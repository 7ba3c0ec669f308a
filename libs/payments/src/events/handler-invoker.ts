import { Inject, Injectable } from '@nestjs/common';
import {
  ApplicationConfig,
  ContextIdFactory,
  ExternalContextCreator,
  ModuleRef,
} from '@nestjs/core';
import type { ContextId, DiscoveryService, NestContainer } from '@nestjs/core';
import { FILTERS } from './handler-enhancers.js';
import { HANDLER_PARAMS, handlerParam, hasParamsToResolve } from './handler-params.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';

/** A provider or controller that carries handlers, as Nest's discovery gives it. */
export type HandlerHost = ReturnType<DiscoveryService['getProviders']>[number];

type Invoke = (event: PaymentEvent, context: PaymentEventContext) => Promise<unknown>;
type Method = (...args: unknown[]) => unknown;

/** `ExecutionContext.getType()` of guards, interceptors and filters on a payment handler. */
export const PAYMENTS_CONTEXT = 'payments';

/**
 * Calls a handler's method as Nest calls a route: with the guards, pipes, interceptors and filters of the method and its
 * class and, in request scope, on an instance of its own.
 */
@Injectable()
export class HandlerInvoker {
  readonly #container: NestContainer;

  constructor(@Inject(ModuleRef) moduleRef: ModuleRef) {
    // Protected on ModuleRef; there is no public way to it.
    this.#container = (moduleRef as unknown as { container: NestContainer }).container;
  }

  /** A function that runs `method` of the host for one event. */
  bind(host: HandlerHost, method: string, scoped: boolean): Invoke {
    const contexts = ExternalContextCreator.fromContainer(isolate(this.#container, host));
    if (!scoped) {
      return create(contexts, host, host.instance as object, method);
    }
    // Of the host's own module: another may have a provider under the same token.
    const moduleRef = host.host!.providers.get(ModuleRef)!.instance as ModuleRef;
    return async (event, context) => {
      const contextId = ContextIdFactory.create();
      // What an instance injects as REQUEST.
      moduleRef.registerRequestByContextId({ event, context }, contextId);
      const instance: object = await moduleRef.resolve(host.token, contextId, { strict: true });
      return create(contexts, host, instance, method, contextId)(event, context);
    };
  }
}

/**
 * The container that Nest builds a handler with. The application's global guards and interceptors are written for HTTP
 * requests, and one that looks for a session would reject every event: so the application configuration is empty. Nest
 * searches the module of a class among providers only, and by class: for a controller it would find none and skip its
 * guards. So the host's module is the only one.
 */
function isolate(container: NestContainer, { host }: HandlerHost): NestContainer {
  const module = Object.create(host!, { hasProvider: { value: () => true } }) as typeof host;
  const modules = new Map([[host!.token, module]]);
  return Object.create(container, {
    applicationConfig: { value: new ApplicationConfig() },
    getModules: { value: () => modules },
  }) as NestContainer;
}

function create(
  contexts: ExternalContextCreator,
  { id }: HandlerHost,
  instance: object,
  method: string,
  contextId?: ContextId,
): Invoke {
  const callback = (instance as Record<string, Method>)[method]!;
  // Nest goes through the parameters one by one, for their pipes; without, it passes the arguments as they are.
  const resolves = hasParamsToResolve(instance.constructor, callback, method);
  const run = contexts.create(
    instance,
    callback,
    method,
    resolves ? HANDLER_PARAMS : undefined,
    resolves ? { exchangeKeyForValue: handlerParam } : undefined,
    contextId,
    // The host that transient enhancers were created for.
    id,
    { guards: true, interceptors: true, filters: false },
    PAYMENTS_CONTEXT,
  ) as Invoke;
  const filtered =
    Reflect.hasMetadata(FILTERS, callback) || Reflect.hasMetadata(FILTERS, instance.constructor);
  return filtered ? filter(contexts, run, callback, instance, id, contextId) : run;
}

/**
 * Runs a handler with its filters separately: Nest assumes that every async filter has handled the error. Here the
 * result of its promise decides, as the result of a synchronous filter does.
 */
function filter(
  contexts: ExternalContextCreator,
  run: Invoke,
  callback: Method,
  instance: object,
  hostId: string,
  contextId?: ContextId,
): Invoke {
  const failures = new WeakMap<PaymentEventContext, { thrown: unknown }>();
  const attempt: Invoke = async (event, context) => {
    try {
      return await run(event, context);
    } catch (thrown) {
      failures.set(context, { thrown });
      throw thrown;
    }
  };
  const filters: unknown = Reflect.getMetadata(FILTERS, callback);
  if (filters !== undefined) Reflect.defineMetadata(FILTERS, filters, attempt);
  const underFilters = contexts.create(
    instance,
    attempt as Method,
    // Nest keeps what it knows of a method under its name, and this one is another: it has no parameters.
    'under filters',
    undefined,
    undefined,
    contextId,
    hostId,
    { guards: false, interceptors: false, filters: true },
    PAYMENTS_CONTEXT,
  ) as Invoke;
  return async (event, context) => {
    const result = await underFilters(event, context);
    const failure = failures.get(context);
    if (failure !== undefined && !result) throw failure.thrown;
    return result;
  };
}
