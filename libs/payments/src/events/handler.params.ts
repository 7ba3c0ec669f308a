/** Key under which Nest finds the parameters of a handler, so that its pipes run on them. */
export const HANDLER_PARAMS = 'nestjs-payments:params';

/** Where Nest's own parameter decorators, and those of `createParamDecorator()`, leave what they were told. */
const NEST_PARAMS = '__routeArguments__';
/** What of a key is in all of `createParamDecorator()`'s. */
const CUSTOM = '__customRouteArgs__';
/** The number Nest gives to a body (`@Body()`), and to a message's payload (`@Payload()`): here, the event. */
const BODY = 3;

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
    [`${BODY}:0`]: { index: 0, pipes: [] },
    'context:1': { index: 1, pipes: [] },
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

/** What Nest passes to the method for a parameter that no decorator of its own fetches. */
export function handlerParam(type: number, property: unknown, args: readonly unknown[]): unknown {
  if (type !== BODY) return args[1];
  const event = args[0] as Record<string, unknown>;
  return typeof property === 'string' ? event[property] : event;
}
