import type { LoggerService, LogLevel } from '@nestjs/common';
import { Logger } from '@nestjs/common';
import { messageOf } from './emulator.errors.js';

/**
 * A listener that can't stop the deliveries it is told of: what it throws is logged, for it is the
 * listener's mistake and must not stay unseen.
 */
export function logMistakes<T>(listener: (told: T) => void): (told: T) => void {
  const logger = new Logger('PaymentsEmulator');
  return (told) => {
    try {
      listener(told);
    } catch (error) {
      logger.error(`onDelivery threw: ${messageOf(error)}`);
    }
  };
}

const BOOT = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
  'ExceptionHandler',
]);

/**
 * Keeps Nest's boot lines of the emulator out of the log, and its errors too: they are thrown. Nest has one logger for the whole process,
 * which belongs to the application under test as well: it is left as it was found, and everything
 * but boot lines passes meanwhile.
 *
 * @returns ends the silence.
 */
export function silenceBoot(): () => void {
  const found = Logger['staticInstanceRef'];
  // With several emulators starting at once, one may find another's in place and put it back later:
  // it must then be a mere pass-through.
  let silent = true;
  const pass =
    (level: LogLevel) =>
    (message: unknown, ...rest: unknown[]): void => {
      if (!silent || !BOOT.has(String(rest.at(-1)))) found?.[level]?.(message, ...rest);
    };
  const quiet: LoggerService = {
    log: pass('log'),
    error: pass('error'),
    warn: pass('warn'),
    debug: pass('debug'),
    verbose: pass('verbose'),
    fatal: pass('fatal'),
  };
  Logger.overrideLogger(quiet);
  return () => {
    silent = false;
    if (Logger['staticInstanceRef'] === quiet) Logger.overrideLogger(found ?? false);
  };
}
