import { isatty } from 'node:tty';
import { ConsoleLogger } from '@nestjs/common';

/** Who tells, line by line, how Nest puts an application together. */
const BOOT: ReadonlySet<unknown> = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
  'ExceptionHandler',
]);

/** Nest's own log without its boot lines. Of a boot that fails the error itself is thrown, and told once. */
export class ShopLogger extends ConsoleLogger {
  constructor() {
    // A file and a pipe take colours for text.
    super({ colors: isatty(1) && process.stdout.hasColors() });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (!BOOT.has(rest.at(-1))) super.log(message, ...rest);
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (!BOOT.has(rest.at(-1))) super.error(message, ...rest);
  }
}
