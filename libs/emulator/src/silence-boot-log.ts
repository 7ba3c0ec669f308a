import type { LoggerService, LogLevel } from '@nestjs/common';
import { Logger } from '@nestjs/common';

const BOOT_CONTEXTS = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
  'ExceptionHandler',
]);

/**
 * Suppresses the lines that Nest logs while the emulator starts. Errors are suppressed too, because `start()` throws them.
 *
 * Nest has one logger per process, and the application under test uses the same logger. Other lines are still logged,
 * and the logger is restored when the emulator has started.
 *
 * @returns a function that restores the log
 */
export function silenceBootLog(): () => void {
  const original = Logger['staticInstanceRef'];
  // If several emulators start concurrently, one of them may store the wrapper of another as the original logger, and
  // later restore this wrapper. The wrapper must then forward every line.
  let active = true;
  const forward =
    (level: LogLevel) =>
    (message: unknown, ...rest: unknown[]): void => {
      if (!active || !BOOT_CONTEXTS.has(String(rest.at(-1)))) original?.[level]?.(message, ...rest);
    };
  const filtered: LoggerService = {
    log: forward('log'),
    error: forward('error'),
    warn: forward('warn'),
    debug: forward('debug'),
    verbose: forward('verbose'),
    fatal: forward('fatal'),
  };
  Logger.overrideLogger(filtered);
  return () => {
    active = false;
    if (Logger['staticInstanceRef'] === filtered) Logger.overrideLogger(original ?? false);
  };
}
