import { ModuleLogger } from '../errors/module-log.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { withTimeLimit } from '../runtime/deadline.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { EventRelay } from './engine.js';

/** The time for which the start of the application waits for the engine, in milliseconds. */
const OPEN_MS = 5000;

/**
 * Connects to an engine. If the engine cannot be reached in time, logs a warning, because an engine that is away must
 * not prevent the application from receiving webhook requests.
 *
 * @throws PaymentsError `engine_unsafe`.
 */
export async function openEngine(
  option: 'relay' | 'source',
  engine: Pick<EventRelay, 'open'>,
  runtime: PaymentsRuntime,
): Promise<void> {
  if (engine.open === undefined) return;
  const late = (): Error => new Error(`There was no answer within ${OPEN_MS} ms.`);
  try {
    await withTimeLimit(engine.open(), OPEN_MS, runtime, late);
  } catch (error) {
    if (error instanceof PaymentsError && error.code === 'engine_unsafe') throw error;
    new ModuleLogger('PaymentEngine').warn(
      `The engine of "${option}" could not be reached at the start, so its settings are not checked yet. The ` +
        `module tries again with the first message. ${describeError(error)}`,
    );
  }
}
