import { AsyncLocalStorage } from 'node:async_hooks';
import { ContextIdFactory } from '@nestjs/core';
import type { ContextId, ExternalContextCreator, ModuleRef } from '@nestjs/core';
import { describeError, isUnrecoverable, UnrecoverableError } from '../errors/payments-error.js';
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
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';

type Invoke = (event: PaymentEvent, context: PaymentEventContext) => Promise<unknown>;
type Method = (...args: unknown[]) => unknown;

/** The result of `ExecutionContext.getType()` in the guards, interceptors and filters of a payment handler. */
export const PAYMENTS_CONTEXT = 'payments';

/**
 * Returns a function that calls `method` of the host for one event as Nest calls a route: with the guards, pipes,
 * interceptors and filters of the method and its class. A request-scoped handler gets a new instance for each event.
 */
export function bindHandler(
  applicationRef: ModuleRef,
  host: NestHost,
  method: string,
  scoped: boolean,
): Invoke {
  const contexts = isolatedContexts(applicationRef, host);
  if (!scoped) return createInvoke(contexts, host, host.instance as object, method);
  const moduleRef = moduleRefOf(host);
  return async (event, context) => {
    const contextId = ContextIdFactory.create();
    // Providers of the new instance that inject REQUEST get this object.
    moduleRef.registerRequestByContextId({ event, context }, contextId);
    const instance: object = await moduleRef.resolve(host.token, contextId, { strict: true });
    return createInvoke(contexts, host, instance, method, contextId)(event, context);
  };
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
 * Returns a function that runs a handler with its filters. Nest assumes that every async filter has handled the error.
 * Here, a filter has handled the error only if it returns a truthy value or a promise of such a value.
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
    // Nest caches the parameters of a method by its name. No method has this name, so no parameters are cached for it.
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

/** Reflect key of a handler's parameters. Nest reads the parameters to run their pipes. */
const HANDLER_PARAMS = 'nestjs-payments:params';

/**
 * Metadata key of the parameter for the event: the key of a request body, so that `@Body()` and `@Payload()` select the
 * event.
 */
const EVENT_PARAM = `${BODY_PARAM}:0`;
const CONTEXT_PARAM = 'context:1';

interface ParamMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes: readonly unknown[];
}

/**
 * Defines the parameters of a handler for Nest: the event, then its context. A decorator made with
 * `createParamDecorator()` replaces the event or the context, and `@Body(pipe)` or `@Payload(pipe)` adds pipes to the
 * event. Must be called from the method's decorator, because the decorators of the parameters run before it.
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
 * Whether Nest must resolve the parameters of a handler. If not, Nest passes the arguments unchanged and does not
 * iterate over the parameters for each delivery.
 */
function hasParamsToResolve(type: object, callback: object, method: string): boolean {
  if (Reflect.hasMetadata(PIPES, type) || Reflect.hasMetadata(PIPES, callback)) return true;
  // Undefined if the method was copied from another class, because the metadata stays with that class.
  const params = Reflect.getMetadata(HANDLER_PARAMS, type, method) as
    Record<string, ParamMetadata> | undefined;
  return Object.entries(params ?? {}).some(
    ([key, { data, pipes }]) =>
      (key !== EVENT_PARAM && key !== CONTEXT_PARAM) || data !== undefined || pipes.length > 0,
  );
}

/** Returns the event, one of its fields, or the context. Nest itself resolves parameters with other decorators. */
function handlerParam(type: number, property: unknown, args: readonly unknown[]): unknown {
  if (type !== BODY_PARAM) return args[1];
  const event = args[0] as Record<string, unknown>;
  return typeof property === 'string' ? event[property] : event;
}

/** Maximum number of characters in each description if two errors are described together. */
const MAX_LENGTH = 450;
/** Maximum number of errors in a chain of causes that are compared. */
const MAX_CAUSES = 10;

interface Attempt {
  /** The error of the handler, wrapped because a handler can throw `undefined`. */
  failure?: { readonly thrown: unknown };
}

const attempts = new AsyncLocalStorage<Attempt>();

/**
 * Returns a function that calls the method of a handler, and records its error for {@link keepingErrors}. The function
 * inherits from the method, so that it has the method's name and metadata.
 */
function recordingErrors<F extends (...args: never[]) => unknown>(method: F): F {
  const recording = function (this: unknown, ...args: Parameters<F>): unknown {
    try {
      const result = method.apply(this, args);
      if (result instanceof Promise) result.catch(recordError);
      return result;
    } catch (thrown) {
      recordError(thrown);
      throw thrown;
    }
  };
  Object.setPrototypeOf(recording, method);
  Object.defineProperty(recording, 'name', { value: method.name });
  return recording as unknown as F;
}

/**
 * Runs an attempt. If the handler threw one error, and a filter or an interceptor of the handler then threw another,
 * the attempt rejects with an error that describes both. The second error may come from a mistake in the filter, and
 * must not hide the first.
 */
async function keepingErrors<R>(run: () => Promise<R>): Promise<R> {
  const attempt: Attempt = {};
  try {
    return await attempts.run(attempt, run);
  } catch (second) {
    const { failure } = attempt;
    if (failure === undefined || contains(second, failure.thrown)) throw second;
    throw bothErrors(failure.thrown, second);
  }
}

/** Records the error of a guard, a pipe, an interceptor or the handler, before the filters run. */
function recordError(thrown: unknown): void {
  const attempt = attempts.getStore();
  if (attempt !== undefined) attempt.failure ??= { thrown };
}

/**
 * Whether `second` is the same error as `first`, or has `first` in its chain of causes. The description of `second`
 * then contains that of `first`.
 */
function contains(second: unknown, first: unknown): boolean {
  try {
    let error = second;
    for (let depth = 0; depth < MAX_CAUSES; depth += 1) {
      if (error === first) return true;
      if (!(error instanceof Error) || error.cause === undefined) return false;
      error = error.cause;
    }
  } catch {
    // A getter or a revoked proxy threw.
  }
  return false;
}

/**
 * Creates an error that describes two errors. The result is unrecoverable if one of the two errors is unrecoverable, so
 * that the delivery becomes dead.
 */
function bothErrors(first: unknown, second: unknown): Error {
  const [own, later] = [first, second].map((thrown) => describeError(thrown).slice(0, MAX_LENGTH));
  const message = `${own}. A filter or an interceptor of the handler then threw: ${later}`;
  const isFinal = isUnrecoverable(first) || isUnrecoverable(second);
  const both = isFinal ? new UnrecoverableError(message) : new Error(message);
  try {
    if (first instanceof Error && typeof first.stack === 'string') {
      Object.defineProperty(both, 'stack', { value: first.stack });
    }
  } catch {
    // A getter or a revoked proxy threw.
  }
  return both;
}
