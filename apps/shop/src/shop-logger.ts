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

/** Nest's logger without the lines of the boot. If the boot fails, `startShop` throws the error, and `main.ts` prints it once. */
export class ShopLogger extends ConsoleLogger {
  constructor() {
    // Files and pipes do not interpret colours.
    super({ colors: isatty(1) && process.stdout.hasColors() });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (!BOOT_CONTEXTS.has(rest.at(-1))) super.log(message, ...rest);
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (!BOOT_CONTEXTS.has(rest.at(-1))) super.error(message, ...rest);
  }
}
