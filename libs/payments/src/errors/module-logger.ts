import { Logger } from '@nestjs/common';
import { systemRuntime } from '../runtime/payments-runtime.js';
import { describeError } from './payments-error.js';
import { ThrottledLog } from './throttled-log.js';
import { guard } from './unhandled-rejections.js';

/** Prints a warning of Node.js, because the logger of the application is what failed. */
const warn = (message: unknown): void => process.emitWarning(String(message), 'PaymentsWarning');
const failures = new ThrottledLog({ warn, error: warn }, systemRuntime);

/** Calls a logger of the application. Never throws; an error of the logger is printed as a warning of Node.js. */
function callLogger(call: () => void): void {
  try {
    guard(loggerFailed, call);
  } catch (error) {
    loggerFailed(error);
  }
}

function loggerFailed(error: unknown): void {
  failures.warn(
    'logger',
    () =>
      'The logger of the application failed, so a line of nestjs-payments may be missing in the log. Nothing else is ' +
      `affected. ${describeError(error)}`,
  );
}

/** The logger of this module: Nest's logger, which calls the logger of the application. Never throws. */
export class ModuleLogger extends Logger {
  override log(message: unknown): void {
    callLogger(() => super.log(message));
  }

  override warn(message: unknown): void {
    callLogger(() => super.warn(message));
  }

  override error(message: unknown): void {
    callLogger(() => super.error(message));
  }

  override debug(message: unknown): void {
    callLogger(() => super.debug(message));
  }
}
