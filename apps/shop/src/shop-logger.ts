import { isatty } from 'node:tty';
import { ConsoleLogger } from '@nestjs/common';

/** The contexts in which Nest logs how it assembles an application. */
const BOOT_CONTEXTS: ReadonlySet<unknown> = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
  'ExceptionHandler',
]);

/**
 * Nest's logger, which does not log the lines about the boot. If the boot fails, `startShop` throws the error, and
 * `main.ts` prints it.
 */
export class ShopLogger extends ConsoleLogger {
  constructor() {
    // No colours if the output is a file or a pipe.
    super({ colors: isatty(1) && process.stdout.hasColors() });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (!BOOT_CONTEXTS.has(rest.at(-1))) super.log(message, ...rest);
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (!BOOT_CONTEXTS.has(rest.at(-1))) super.error(message, ...rest);
  }
}
