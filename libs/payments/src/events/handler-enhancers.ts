import { PaymentsError } from '../payments.errors.js';
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
 * Nest makes a guard that is given as a class, and its like, when it reads the class it stands on. A provider
 * made by a factory, or given as a value, shows it none; and what was not made is skipped without a word when
 * a method is called. A guard that is skipped lets everyone in, so such a handler refuses to boot.
 *
 * @throws PaymentsError `handlers_invalid`, naming the enhancer and the mend.
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
      `${name} stands on the payment handler ${owner}.${method} and would never run: Nest makes none for a ` +
        'provider that is a value or made by a factory (nor, in older releases, for a class under a token). Give an ' +
        `instance (new ${name}(…)), or provide the class ${owner} itself.`,
    );
  }
}

function listed(key: string, target: object): unknown[] {
  return [(Reflect.getMetadata(key, target) as unknown) ?? []].flat();
}
