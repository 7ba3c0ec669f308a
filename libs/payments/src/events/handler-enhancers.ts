import type { Type } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import {
  FILTERS,
  GUARDS,
  hasEnhancer,
  INTERCEPTORS,
  metadataList,
  PIPES,
} from '../nest-internals.js';
import type { NestHost } from '../nest-internals.js';

/** Reflect keys of `@UseGuards()` and similar decorators, and the method that Nest calls of each. */
const ENHANCERS: ReadonlyMap<string, string> = new Map([
  [GUARDS, 'canActivate'],
  [PIPES, 'transform'],
  [INTERCEPTORS, 'intercept'],
  [FILTERS, 'catch'],
]);

/**
 * Nest creates a guard, pipe, interceptor or filter that is given as a class when it reads the class that has it. It does
 * not read the class of a provider that is a value or made by a factory, and it skips silently what it did not create.
 * Without its guard, a handler would run for every event, so the application does not boot.
 *
 * @throws PaymentsError `handlers_invalid`, naming the enhancer and the fix.
 */
export function assertEnhancers(
  host: NestHost,
  prototype: object,
  method: string,
  owner: string,
): void {
  const callback = (prototype as Record<string, object>)[method]!;
  for (const [key, call] of ENHANCERS) {
    const enhancers = [...metadataList(key, prototype.constructor), ...metadataList(key, callback)];
    const missing = enhancers.find(
      (enhancer) =>
        typeof enhancer === 'function' &&
        !(call in enhancer) &&
        !hasEnhancer(host, enhancer as Type),
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
