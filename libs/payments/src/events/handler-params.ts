import { BODY_PARAM, CUSTOM_PARAM, PIPES, ROUTE_PARAMS } from '../nest-internals.js';

/** Key under which Nest finds the parameters of a handler, so that its pipes run on them. */
export const HANDLER_PARAMS = 'nestjs-payments:params';

/** Under the number of a body, because `@Body()` and `@Payload()` select the event. */
const EVENT = `${BODY_PARAM}:0`;
const CONTEXT = 'context:1';

interface ParamMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes: readonly unknown[];
}

/**
 * Defines the parameters of a handler for Nest: the event, then its context. A decorator made with
 * `createParamDecorator()` replaces one of them, and `@Body(pipe)` or `@Payload(pipe)` adds pipes to the event. Call it
 * from the method's decorator: the decorators of its parameters have run before.
 */
export function defineHandlerParams(target: object, method: string): void {
  const params: Record<string, ParamMetadata> = {
    [EVENT]: { index: 0, pipes: [] },
    [CONTEXT]: { index: 1, pipes: [] },
  };
  const decorated = (Reflect.getOwnMetadata(ROUTE_PARAMS, target.constructor, method) ??
    {}) as Record<string, ParamMetadata>;
  for (const [key, param] of Object.entries(decorated)) {
    if (!key.includes(CUSTOM_PARAM) && !key.startsWith(`${BODY_PARAM}:`)) continue;
    for (const [own, { index }] of Object.entries(params)) {
      if (index === param.index) delete params[own];
    }
    params[key] = param;
  }
  Reflect.defineMetadata(HANDLER_PARAMS, params, target.constructor, method);
}

/**
 * Whether a pipe or a parameter's decorator changes the arguments. Otherwise Nest may pass them as they are, which saves
 * a walk over the parameters for every delivery.
 */
export function hasParamsToResolve(type: object, callback: object, method: string): boolean {
  if (Reflect.hasMetadata(PIPES, type) || Reflect.hasMetadata(PIPES, callback)) return true;
  // A method that was copied from another class has brought none with it.
  const params = Reflect.getMetadata(HANDLER_PARAMS, type, method) as
    Record<string, ParamMetadata> | undefined;
  return Object.entries(params ?? {}).some(
    ([key, { data, pipes }]) =>
      (key !== EVENT && key !== CONTEXT) || data !== undefined || pipes.length > 0,
  );
}

/** What Nest passes to the method for a parameter that no decorator of its own fetches. */
export function handlerParam(type: number, property: unknown, args: readonly unknown[]): unknown {
  if (type !== BODY_PARAM) return args[1];
  const event = args[0] as Record<string, unknown>;
  return typeof property === 'string' ? event[property] : event;
}
