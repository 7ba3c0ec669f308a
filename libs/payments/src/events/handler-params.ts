/** Key under which Nest finds the parameters of a handler, so that its pipes run on them. */
export const HANDLER_PARAMS = 'nestjs-payments:params';

/** Where Nest's own parameter decorators, and those of `createParamDecorator()`, leave what they were told. */
const NEST_PARAMS = '__routeArguments__';
/** What of a key is in all of `createParamDecorator()`'s. */
const CUSTOM = '__customRouteArgs__';
/** The number Nest gives to a body (`@Body()`), and to a message's payload (`@Payload()`): here, the event. */
const BODY = 3;

const EVENT = `${BODY}:0`;
const CONTEXT = 'context:1';
/** Where `@UsePipes()` leaves its pipes, on a class or a method. */
const PIPES = '__pipes__';

interface ParamMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes: readonly unknown[];
}

/**
 * Tells Nest what the parameters of a handler are: the event, then its context. A decorator of
 * `createParamDecorator()` on one of them has its way instead, and `@Body(pipe)` or `@Payload(pipe)` puts
 * pipes on the event alone. To be called when the parameters' own decorators have run, as they have before
 * their method's.
 */
export function defineHandlerParams(target: object, method: string): void {
  const params: Record<string, ParamMetadata> = {
    [EVENT]: { index: 0, pipes: [] },
    [CONTEXT]: { index: 1, pipes: [] },
  };
  const decorated = (Reflect.getOwnMetadata(NEST_PARAMS, target.constructor, method) ??
    {}) as Record<string, ParamMetadata>;
  for (const [key, param] of Object.entries(decorated)) {
    if (!key.includes(CUSTOM) && !key.startsWith(`${BODY}:`)) continue;
    for (const [own, { index }] of Object.entries(params)) {
      if (index === param.index) delete params[own];
    }
    params[key] = param;
  }
  Reflect.defineMetadata(HANDLER_PARAMS, params, target.constructor, method);
}

/**
 * Whether anything stands between the arguments and the method: a pipe, or a decorator on a parameter. Otherwise
 * Nest may pass them as they are, which saves it a walk over the parameters for every delivery.
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
  if (type !== BODY) return args[1];
  const event = args[0] as Record<string, unknown>;
  return typeof property === 'string' ? event[property] : event;
}
