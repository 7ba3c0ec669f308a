import { ModuleLogger } from './errors/module-logger.js';
import { describeError, framesOf } from './errors/payments-error.js';
import { ThrottledLog } from './errors/throttled-log.js';
import { guard } from './errors/unhandled-rejections.js';
import type { ModuleRuntime } from './runtime/module-runtime.js';

/**
 * Returns a function that calls the function of the option `name`, and logs the rejections of promises that this function
 * started and did not await, at most once per minute and option. Returns any other value unchanged.
 */
export type GuardOption = <F>(name: string, option: F) => F;

/** Creates a {@link GuardOption}, for one import of the module. */
export function createOptionGuard(runtime: ModuleRuntime): GuardOption {
  const log = new ThrottledLog(new ModuleLogger('PaymentsModule'), runtime);
  return (name, option) => {
    if (typeof option !== 'function') return option;
    const rejected = (reason: unknown): void =>
      log.error(
        name,
        () =>
          `The option "${name}" did not await a promise, which rejected: ${describeError(reason)}. The module ignores ` +
          `this error: await the promise.${framesOf(reason)}`,
      );
    const call = (...args: unknown[]): unknown =>
      guard(rejected, () => Reflect.apply(option, undefined, args));
    return call as typeof option;
  };
}
