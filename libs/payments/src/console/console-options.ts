import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { PaymentsError } from '../payments.errors.js';
import type { ConsoleRequest } from './console-request.js';

/** A guard's class, which Nest makes with what `imports` export, or a guard. */
export type ConsoleGuard = Type<CanActivate> | CanActivate;

/** What `PaymentsConsoleModule.register()` takes. */
export interface PaymentsConsoleOptions {
  /**
   * Where the console stands, without the application's global prefix: a plain path such as `ops/payments`,
   * without parameters or wildcards.
   */
  path: string;
  /**
   * Who may use it: all of them must let a request pass. With none, the application starts only where
   * `NODE_ENV` is `development`, and the console answers only this machine.
   */
  guards?: readonly ConsoleGuard[];
  /** Modules that export what the guards' classes inject. Default: none. */
  imports?: ModuleMetadata['imports'];
  /**
   * The operator's name, for the log and the page, or a promise of it; of the name, the first 100 characters are
   * kept, and no control character. If it throws or rejects, nothing is done and no payload is shown. Default: the name {@link BasicAuthGuard} let in, or
   * `username`, `email`, `sub`, `id` or `name` of `request.user`, or `unknown`.
   */
  who?: (request: ConsoleRequest) => string | undefined | Promise<string | undefined>;
}

/** The same, complete and checked. */
export interface ResolvedConsoleOptions {
  /** Without a slash at either end. */
  readonly path: string;
  readonly guards: readonly ConsoleGuard[];
  readonly who: PaymentsConsoleOptions['who'];
}

/** Nest injection token of the {@link ResolvedConsoleOptions}. */
export const CONSOLE_OPTIONS = Symbol('PAYMENTS_CONSOLE_OPTIONS');

/** @throws PaymentsError `options_invalid`. */
export function resolveConsoleOptions(options: PaymentsConsoleOptions): ResolvedConsoleOptions {
  const { path, guards = [], imports = [], who, ...others } = options ?? {};
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw consoleInvalid(
      `there is no option "${unknown}". The options are path, guards, imports, who.`,
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
      '"guards" must be a list of guards: classes or objects with canActivate(). Where one of them is undefined, ' +
        'two files import each other.',
    );
  }
  if (!Array.isArray(imports)) throw consoleInvalid('"imports" must be a list of modules.');
  if (who !== undefined && typeof who !== 'function') {
    throw consoleInvalid('"who" must be a function that returns the name of the operator.');
  }
  return Object.freeze({ path: trimmed, guards: Object.freeze([...guards]), who });
}

/**
 * Without a guard anybody could read payments and act on them, so that is for a developer's own machine.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function requireGuard(
  { guards, path }: ResolvedConsoleOptions,
  environment: string | undefined,
): void {
  if (guards.length > 0 || environment === 'development') return;
  throw consoleInvalid(
    `the console at "${path}" has no guard, so anybody could read payments and run handlers again. Give it one: ` +
      'PaymentsConsoleModule.register({ path, guards: [YourGuard] }), or [new BasicAuthGuard({ users })]. Only ' +
      `where NODE_ENV is "development" it starts without; here it is ${environment === undefined ? 'not set' : JSON.stringify(environment)}.`,
  );
}

/** The error of an option of the console that is missing or wrong. */
export function consoleInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsConsoleModule: ${message}`);
}

function isGuard(guard: unknown): guard is ConsoleGuard {
  const owner: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return typeof (owner as Partial<CanActivate> | null | undefined)?.canActivate === 'function';
}
