import { PaymentsError } from '../errors/payments-error.js';
import type { HandlerHost } from './handler-invoker.js';

/** Reflect keys of what `@UseGuards()` and its like leave on a class or a method, and what each calls. */
const ENHANCERS: ReadonlyMap<string, string> = new Map([
  ['__guards__', 'canActivate'],
  ['__pipes__', 'transform'],
  ['__interceptors__', 'intercept'],
  ['__exceptionFilters__', 'catch'],
]);

/** Reflect key of the filters on a class or a method. */
export const FILTERS = '__exceptionFilters__';

/**
 * Nest creates a guard, pipe, interceptor or filter that is given as a class when it reads the class that has it. It does
 * not read the class of a provider that is a value or made by a factory, and it skips silently what it did not create.
 * Without its guard, a handler would run for every event, so the application does not boot.
 *
 * @throws PaymentsError `handlers_invalid`, naming the enhancer and the fix.
 */
export function assertEnhancers(
  host: HandlerHost,
  prototype: object,
  method: string,
  owner: string,
): void {
  const callback = (prototype as Record<string, object>)[method]!;
  for (const [key, call] of ENHANCERS) {
    const enhancers = [...listed(key, prototype.constructor), ...listed(key, callback)];
    const missing = enhancers.find(
      (enhancer) =>
        typeof enhancer === 'function' &&
        !(call in enhancer) &&
        !host.host?.injectables.has(enhancer),
    );
    if (missing === undefined) continue;
    const { name } = missing as { name: string };
    throw new PaymentsError(
      'handlers_invalid',
      `${name} is applied to the payment handler ${owner}.${method} and would never run: Nest creates none for a ` +
        'provider that is a value or made by a factory (nor, in older releases, for a class under a token). Give an ' +
        `instance (new ${name}(…)), or provide the class ${owner} itself.`,
    );
  }
}

function listed(key: string, target: object): unknown[] {
  return [(Reflect.getMetadata(key, target) as unknown) ?? []].flat();
}
