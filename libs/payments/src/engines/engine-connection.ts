import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { systemRuntime } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { EventRelay } from './engine.js';
import type { EngineOptions } from './engine-options.js';

/** The time for which the start of the application waits for the engine, in milliseconds. */
const OPEN_MS = 5000;
/** The shortest time between a failed attempt to connect and the next attempt, in milliseconds. */
const PAUSE_MS = 1000;

/**
 * Connects to an engine. If the engine cannot be reached in time, logs a warning and resolves, so that the application
 * can receive webhook requests.
 *
 * @throws PaymentsError `engine_unsafe`.
 */
export async function openEngine(
  option: 'relay' | 'source',
  engine: Pick<EventRelay, 'open'>,
  runtime: PaymentsRuntime,
): Promise<void> {
  if (engine.open === undefined) return;
  try {
    await withTimeLimit(engine.open(), OPEN_MS, runtime);
  } catch (error) {
    if (error instanceof PaymentsError && error.code === 'engine_unsafe') throw error;
    new ModuleLogger('PaymentEngine').warn(
      `The engine of "${option}" could not be reached at the start, so its settings are not checked yet. The ` +
        `module tries again with the first message. ${describeError(error)}`,
    );
  }
}

/** Creates the log of an adapter: at most one line per subject and minute. Call its `flush()` when the adapter closes. */
export function engineLog(): ThrottledLog {
  return new ThrottledLog(new ModuleLogger('PaymentEngine'));
}

/**
 * Reports a setting of the engine that loses events: logs a warning if `setup` is `warn`; otherwise throws.
 *
 * @param text names the setting, its effect and the fix
 * @throws PaymentsError `engine_unsafe`, unless `setup` is `warn`.
 */
export function reportUnsafe(
  text: string,
  { setup }: Pick<EngineOptions, 'setup'>,
  log: Pick<ThrottledLog, 'warn'>,
): void {
  if (setup !== 'warn') throw new PaymentsError('engine_unsafe', text);
  log.warn(text, text);
}

/**
 * Waits until `work`, which closes a connection, has ended. Never rejects.
 *
 * @returns whether `work` resolved or rejected within `ms` milliseconds
 */
export function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const ended = work.then(
    () => true,
    () => true,
  );
  return withTimeLimit(ended, ms, systemRuntime).catch(() => false);
}

/**
 * Replaces an error of a client library by an error that contains only the reason, because the original error may
 * contain a request. Does not replace an error of the module.
 *
 * @param reasonOf returns the reason, without a secret or the content of a message
 */
export async function withReasonOnly<T>(
  work: () => Promise<T>,
  reasonOf: (error: unknown) => string,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof PaymentsError ? error : new Error(reasonOf(error));
  }
}

/** The messages that an adapter is storing. */
export class InProgress<M> {
  readonly #settling = new Map<M, Promise<void>>();

  get size(): number {
    return this.#settling.size;
  }

  /** The messages that are being stored. */
  get messages(): Iterable<M> {
    return this.#settling.keys();
  }

  /**
   * Counts a message as in progress until `settled` ends.
   *
   * @param settled stores the message and sends the result to the engine. Errors of this promise are ignored: if a
   *   message is not acknowledged, the engine delivers the message again
   */
  add(message: M, settled: Promise<unknown>): void {
    const ended = (): void => void this.#settling.delete(message);
    this.#settling.set(message, settled.then(ended, ended));
  }

  /** Resolves when one of the messages is settled. */
  async next(): Promise<void> {
    await Promise.race(this.#settling.values());
  }

  /** Resolves when no message is being stored. */
  async end(): Promise<void> {
    while (this.size > 0) await Promise.all(this.#settling.values());
  }
}

/**
 * A connection to an engine that all calls of an adapter share. The first call of {@link get} connects. After a
 * connection has ended, the next call connects again. If a call cannot connect, all calls within the next second reject
 * with the same error.
 */
export class SharedConnection<T extends object> {
  #opening: Promise<T> | undefined;
  #open: T | undefined;
  readonly #ended = new WeakSet<T>();
  #closed = false;

  /**
   * @param connect connects and checks the settings of the engine. Must close what it opened if it rejects
   * @param disconnect closes a connection, also one that was lost
   */
  constructor(
    private readonly connect: () => Promise<T>,
    private readonly disconnect: (connection: T) => unknown,
  ) {}

  /** Returns the connection, or connects. Rejects if the engine cannot be reached, and after {@link close}. */
  get(): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('The connection to the engine was closed.'));
    return (this.#opening ??= this.#connect());
  }

  /** Closes a connection that was lost or does not work. Ignores a connection that is already closed or being closed. */
  async end(connection: T): Promise<void> {
    if (this.#ended.has(connection)) return;
    this.#ended.add(connection);
    if (this.#open === connection) this.#opening = this.#open = undefined;
    await this.disconnect(connection);
  }

  /**
   * Closes the connection. If a connection is being opened, does not wait for this connection, which is closed as soon
   * as it is open.
   */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#open !== undefined) await this.end(this.#open);
  }

  async #connect(): Promise<T> {
    try {
      const connection = await this.connect();
      if (this.#closed) await this.end(connection);
      if (this.#ended.has(connection)) throw new Error('The connection to the engine was lost.');
      return (this.#open = connection);
    } catch (error) {
      // Otherwise, a gateway with a large backlog would connect hundreds of times per second.
      setTimeout(() => (this.#opening = undefined), PAUSE_MS).unref();
      throw error;
    }
  }
}
