import { Injectable } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import type { ContextId, ExternalContextCreator } from '@nestjs/core';
import { FILTERS, isolatedContexts, moduleRefOf } from '../nest-internals.js';
import type { NestHost } from '../nest-internals.js';
import { HANDLER_PARAMS, handlerParam, hasParamsToResolve } from './handler-params.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';

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
  constructor(private readonly moduleRef: ModuleRef) {}

  /** A function that runs `method` of the host for one event. */
  bind(host: NestHost, method: string, scoped: boolean): Invoke {
    const contexts = isolatedContexts(this.moduleRef, host);
    if (!scoped) {
      return create(contexts, host, host.instance as object, method);
    }
    const moduleRef = moduleRefOf(host);
    return async (event, context) => {
      const contextId = ContextIdFactory.create();
      // What an instance injects as REQUEST.
      moduleRef.registerRequestByContextId({ event, context }, contextId);
      const instance: object = await moduleRef.resolve(host.token, contextId, { strict: true });
      return create(contexts, host, instance, method, contextId)(event, context);
    };
  }
}

function create(
  contexts: ExternalContextCreator,
  { id }: NestHost,
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
