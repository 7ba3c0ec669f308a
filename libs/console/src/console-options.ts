import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { PaymentsError } from 'nestjs-payments';
import type { PaymentsRuntime } from 'nestjs-payments';
import type { ConsoleRequest } from './console-request.js';

/**
 * A guard: an instance, or a class that Nest instantiates. The class can inject what the modules in the option
 * `imports` export.
 */
export type ConsoleGuard = Type<CanActivate> | CanActivate;

/** What an operator may do: only look (`read`), or also change something (`act`). */
export type ConsolePermission = 'read' | 'act';

/** The clocks and timers that the console uses. Tests can replace them. */
export type ConsoleRuntime = Pick<PaymentsRuntime, 'now' | 'monotonic' | 'schedule'>;

/** Options of `PaymentsConsoleModule.register()`. */
export interface PaymentsConsoleOptions {
  /**
   * Path of the console, without the application's global prefix: a plain path such as `ops/payments`, without
   * parameters or wildcards.
   */
  path: string;
  /**
   * Guards that decide who may use the console. Each request must be accepted by all guards. Without a guard, the
   * application starts only if `NODE_ENV` is `development`, and the console responds only to requests from this
   * machine. Default: none.
   */
  guards?: readonly ConsoleGuard[];
  /** Modules that export what the guards inject. Default: none. */
  imports?: ModuleMetadata['imports'];
  /**
   * Returns the operator's name for the log and the page, or a promise of the name. The console removes control
   * characters and uses the first 100 characters. If the function throws or rejects, the console performs no action and
   * shows no payload. Default: the name that {@link BasicAuthGuard} accepted, or `username`, `email`, `sub`, `id` or
   * `name` of `request.user`, or `unknown`.
   */
  who?: (request: ConsoleRequest) => string | undefined | Promise<string | undefined>;
  /**
   * Returns what the operator may do, or a promise of it. With `read`, the page disables the buttons of all actions,
   * and the console rejects each action with the status 403. Any value except `act` counts as `read`. If the function
   * throws or rejects, the request fails. Default: what {@link BasicAuthGuard} allows the user; `act` with another
   * guard.
   */
  may?: (request: ConsoleRequest) => ConsolePermission | Promise<ConsolePermission>;
  /**
   * Clocks and timers that limit how often the console queries the inbox and logs warnings. Default: the clocks and
   * timers of the system.
   */
  runtime?: ConsoleRuntime;
}

export interface ResolvedConsoleOptions {
  /** Path of the console, without a slash at either end. */
  readonly path: string;
  readonly guards: readonly ConsoleGuard[];
  readonly who: PaymentsConsoleOptions['who'];
  readonly may: PaymentsConsoleOptions['may'];
  readonly runtime: ConsoleRuntime;
}

export const CONSOLE_OPTIONS = Symbol('PAYMENTS_CONSOLE_OPTIONS');

export const systemRuntime: ConsoleRuntime = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule: (ms: number, callback: () => void) => {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
});

/** Checks the options and adds the defaults. @throws PaymentsError `options_invalid` if an option is not valid. */
export function resolveConsoleOptions(options: PaymentsConsoleOptions): ResolvedConsoleOptions {
  const {
    path,
    guards = [],
    imports = [],
    who,
    may,
    runtime = systemRuntime,
    ...others
  } = options ?? {};
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw consoleInvalid(
      `there is no option "${unknown}". The options are path, guards, imports, who, may, runtime.`,
    );
  }
  const trimmed = typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '') : '';
  if (!/^[\w.~-]+(\/[\w.~-]+)*$/.test(trimmed)) {
    throw consoleInvalid(
      '"path" must be a plain path such as "ops/payments", without parameters or wildcards.',
    );
  }
  if (!Array.isArray(guards) || !guards.every(isGuard)) {
    throw consoleInvalid(
      '"guards" must be a list of guards: classes or objects with canActivate(). If a guard is undefined, its ' +
        'file probably imports the file that passes the guard.',
    );
  }
  if (!Array.isArray(imports)) throw consoleInvalid('"imports" must be a list of modules.');
  if (who !== undefined && typeof who !== 'function') {
    throw consoleInvalid('"who" must be a function that returns the name of the operator.');
  }
  if (may !== undefined && typeof may !== 'function') {
    throw consoleInvalid("\"may\" must be a function that returns 'read' or 'act'.");
  }
  if (typeof runtime?.schedule !== 'function') {
    throw consoleInvalid('"runtime" must have now(), monotonic() and schedule().');
  }
  return Object.freeze({ path: trimmed, guards: Object.freeze([...guards]), who, may, runtime });
}

/**
 * Throws an error if there is no guard, unless `environment` is `development`. Without a guard, everybody could read
 * payments and act on them.
 */
export function requireGuard(
  { guards, path }: ResolvedConsoleOptions,
  environment: string | undefined,
): void {
  if (guards.length > 0 || environment === 'development') return;
  throw consoleInvalid(
    `the console at "${path}" has no guard, so everybody could read payments and run handlers again. Add a guard: ` +
      'PaymentsConsoleModule.register({ path, guards: [YourGuard] }), or [new BasicAuthGuard({ users })]. The console ' +
      `starts without a guard only if NODE_ENV is "development"; here it is ${environment === undefined ? 'not set' : JSON.stringify(environment)}.`,
  );
}

export function consoleInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsConsoleModule: ${message}`);
}

function isGuard(guard: unknown): guard is ConsoleGuard {
  const owner: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return typeof (owner as Partial<CanActivate> | null | undefined)?.canActivate === 'function';
}
