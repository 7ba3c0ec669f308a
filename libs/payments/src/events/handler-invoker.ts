import { Injectable } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import type { ContextId, ExternalContextCreator } from '@nestjs/core';
import {
  BODY_PARAM,
  CUSTOM_PARAM,
  FILTERS,
  INTERCEPTORS,
  isolatedContexts,
  moduleRefOf,
  PIPES,
  ROUTE_PARAMS,
} from '../nest-internals.js';
import type { NestHost } from '../nest-internals.js';
import { keepingErrors, recordError, recordingErrors } from './handler-errors.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';

type Invoke = (event: PaymentEvent, context: PaymentEventContext) => Promise<unknown>;
type Method = (...args: unknown[]) => unknown;

/** `ExecutionContext.getType()` of guards, interceptors and filters on a payment handler. */
export const PAYMENTS_CONTEXT = 'payments';

/**
 * Calls a handler's method as Nest calls a route: with the guards, pipes, interceptors and filters of the method and its
 * class. A request-scoped handler gets a new instance for each event.
 */
@Injectable()
export class HandlerInvoker {
  constructor(private readonly moduleRef: ModuleRef) {}

  /** A function that runs `method` of the host for one event. */
  bind(host: NestHost, method: string, scoped: boolean): Invoke {
    const contexts = isolatedContexts(this.moduleRef, host);
    if (!scoped) {
      return createInvoke(contexts, host, host.instance as object, method);
    }
    const moduleRef = moduleRefOf(host);
    return async (event, context) => {
      const contextId = ContextIdFactory.create();
      // Providers of the new instance that inject REQUEST get this object.
      moduleRef.registerRequestByContextId({ event, context }, contextId);
      const instance: object = await moduleRef.resolve(host.token, contextId, { strict: true });
      return createInvoke(contexts, host, instance, method, contextId)(event, context);
    };
  }
}

function createInvoke(
  contexts: ExternalContextCreator,
  { id: hostId }: NestHost,
  instance: object,
  method: string,
  contextId?: ContextId,
): Invoke {
  const callback = (instance as Record<string, Method>)[method]!;
  const resolves = hasParamsToResolve(instance.constructor, callback, method);
  const has = (key: string): boolean =>
    Reflect.hasMetadata(key, callback) || Reflect.hasMetadata(key, instance.constructor);
  const intercepted = has(INTERCEPTORS);
  const run = contexts.create(
    instance,
    intercepted ? recordingErrors(callback) : callback,
    method,
    resolves ? HANDLER_PARAMS : undefined,
    resolves ? { exchangeKeyForValue: handlerParam } : undefined,
    contextId,
    // Nest looks up transient enhancers by the id of the provider or controller that they were created for.
    hostId,
    { guards: true, interceptors: true, filters: false },
    PAYMENTS_CONTEXT,
  ) as Invoke;
  const filtered = has(FILTERS)
    ? withFilters(contexts, run, callback, instance, hostId, contextId)
    : run;
  if (filtered === run && !intercepted) return run;
  return (event, context) => keepingErrors(() => filtered(event, context));
}

/**
 * Runs a handler with its filters. Nest assumes that every async filter has handled the error. Here, the value that the
 * filter's promise resolves with decides whether it has, as the return value of a synchronous filter does.
 */
function withFilters(
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
      recordError(thrown);
      throw thrown;
    }
  };
  const filters: unknown = Reflect.getMetadata(FILTERS, callback);
  if (filters !== undefined) Reflect.defineMetadata(FILTERS, filters, attempt);
  const filtered = contexts.create(
    instance,
    attempt as Method,
    // Nest caches a method's parameters by its name. This name is no method's, so it has no cached parameters.
    'attempt with filters',
    undefined,
    undefined,
    contextId,
    hostId,
    { guards: false, interceptors: false, filters: true },
    PAYMENTS_CONTEXT,
  ) as Invoke;
  return async (event, context) => {
    const result = await filtered(event, context);
    const failure = failures.get(context);
    if (failure !== undefined && !result) throw failure.thrown;
    return result;
  };
}

/** Reflect key of a handler's parameters. Nest reads them to run the parameters' pipes. */
const HANDLER_PARAMS = 'nestjs-payments:params';

/** Key of the event parameter: that of a request body, because `@Body()` and `@Payload()` select the event. */
const EVENT_PARAM = `${BODY_PARAM}:0`;
const CONTEXT_PARAM = 'context:1';

interface ParamMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes: readonly unknown[];
}

/**
 * Defines the parameters of a handler for Nest: the event, then its context. A decorator made with
 * `createParamDecorator()` replaces either of them, and `@Body(pipe)` or `@Payload(pipe)` adds pipes to the event. Must
 * be called from the method's decorator, because the decorators of its parameters have run by then.
 */
export function defineHandlerParams(target: object, method: string): void {
  const params: Record<string, ParamMetadata> = {
    [EVENT_PARAM]: { index: 0, pipes: [] },
    [CONTEXT_PARAM]: { index: 1, pipes: [] },
  };
  const decorated = (Reflect.getOwnMetadata(ROUTE_PARAMS, target.constructor, method) ??
    {}) as Record<string, ParamMetadata>;
  for (const [key, param] of Object.entries(decorated)) {
    if (!key.includes(CUSTOM_PARAM) && !key.startsWith(`${BODY_PARAM}:`)) continue;
    for (const [replaced, { index }] of Object.entries(params)) {
      if (index === param.index) delete params[replaced];
    }
    params[key] = param;
  }
  Reflect.defineMetadata(HANDLER_PARAMS, params, target.constructor, method);
}

/**
 * Whether a pipe or a parameter decorator changes the arguments. If none does, Nest passes the arguments unchanged,
 * without iterating over the parameters for each delivery.
 */
function hasParamsToResolve(type: object, callback: object, method: string): boolean {
  if (Reflect.hasMetadata(PIPES, type) || Reflect.hasMetadata(PIPES, callback)) return true;
  // Undefined if the method was copied from another class: the metadata stays with that class.
  const params = Reflect.getMetadata(HANDLER_PARAMS, type, method) as
    Record<string, ParamMetadata> | undefined;
  return Object.entries(params ?? {}).some(
    ([key, { data, pipes }]) =>
      (key !== EVENT_PARAM && key !== CONTEXT_PARAM) || data !== undefined || pipes.length > 0,
  );
}

/** The argument for a parameter that is not decorated with a decorator of `createParamDecorator()`. */
function handlerParam(type: number, property: unknown, args: readonly unknown[]): unknown {
  if (type !== BODY_PARAM) return args[1];
  const event = args[0] as Record<string, unknown>;
  return typeof property === 'string' ? event[property] : event;
}
