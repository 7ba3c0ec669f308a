import { callersGuard, guard } from './errors/unhandled-rejections.js';
import { ModuleLogger } from './errors/module-logger.js';
import { describeError, framesOf } from './errors/payments-error.js';
import { ThrottledLog } from './errors/throttled-log.js';
import { systemRuntime } from './runtime/payments-runtime.js';
import type { PaymentsRuntime } from './runtime/payments-runtime.js';

/**
 * Returns a function that calls the function of the option `name`, and logs the rejections of promises that this function
 * started and did not await, at most once per minute and option. Returns any other value unchanged.
 */
export type GuardOption = <F>(name: string, option: F) => F;

/** Creates a {@link GuardOption}, for one import of the module. */
export function createOptionGuard(onClose: (callback: () => void) => void): GuardOption {
  let log: ThrottledLog | undefined;
  // The system's clock, because the clock of the application may be the function that rejects.
  const createLog = (): ThrottledLog =>
    new ThrottledLog(new ModuleLogger('PaymentsModule'), {
      monotonic: () => systemRuntime.monotonic(),
      schedule: (ms, callback) => systemRuntime.schedule(ms, callback),
      onClose,
    });
  return (name, option) => {
    if (typeof option !== 'function') return option;
    const rejected = (reason: unknown): void => {
      log ??= createLog();
      log.error(
        name,
        () =>
          `The option "${name}" did not await a promise, which rejected: ${describeError(reason)}. The module ignores ` +
          `this error: await the promise.${framesOf(reason)}`,
      );
    };
    const call = (...args: unknown[]): unknown =>
      guard(rejected, () => Reflect.apply(option, undefined, args));
    return call as typeof option;
  };
}

/** The runtime of an application, with guarded functions. */
export function guardRuntime(runtime: PaymentsRuntime, guardOption: GuardOption): PaymentsRuntime {
  if (runtime === systemRuntime) return runtime;
  const schedule = guardOption('runtime.schedule', (ms: number, callback: () => void) =>
    guardOption('runtime.schedule', runtime.schedule(ms, callback)),
  );
  return {
    now: guardOption('runtime.now', () => runtime.now()),
    monotonic: guardOption('runtime.monotonic', () => runtime.monotonic()),
    random: guardOption('runtime.random', () => runtime.random()),
    schedule: (ms, callback) => {
      const inCallersGuard = callersGuard();
      return schedule(ms, () => inCallersGuard(callback));
    },
    get environment() {
      return runtime.environment;
    },
  };
}
