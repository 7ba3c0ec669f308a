import { relative } from 'node:path';
import type { PaymentsErrorCode } from './payments-error-code.js';

/**
 * Base class of all errors that this package throws, except for invalid arguments (an absolute URL, an empty id), which
 * cause a `TypeError`.
 *
 * `code` is stable and meant for programs; `message` names the cause and the fix and is meant for people. These two
 * properties, and the results of `JSON.stringify` and `util.inspect`, contain no secret, token, signature or payload.
 *
 * @example
 * ```ts
 * try {
 *   await payments.getTransaction(id);
 * } catch (error) {
 *   if (error instanceof PaymentsError && error.code === 'not_found') return null;
 *   throw error;
 * }
 * ```
 */
export class PaymentsError extends Error {
  override readonly name: string = 'PaymentsError';

  constructor(
    /** Code of the cause, for programs. */
    readonly code: PaymentsErrorCode,
    message: string,
    /** `cause` is the error that caused this error. */
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** Returns name, code, message and facts, which are safe to log. */
  toJSON(): Record<string, unknown> {
    return { ...(this as object), name: this.name, code: this.code, message: this.message };
  }
}

/**
 * The error that a handler throws if another attempt cannot succeed. The delivery becomes a dead letter at once,
 * instead of after the last attempt.
 *
 * @example
 * ```ts
 * if (transaction.currency !== 'KES') throw new UnrecoverableError('only KES is booked here');
 * ```
 */
export class UnrecoverableError extends PaymentsError {
  override readonly name = 'UnrecoverableError';

  constructor(message: string) {
    super('unrecoverable', message);
  }
}

const MAX_LENGTH = 1000;
const MAX_FRAMES = 10;
/** Maximum number of errors that describeError() describes in a chain of causes. */
const MAX_CAUSES = 3;

/**
 * Describes any thrown value in one line: an error, a frozen object, `undefined`, an object whose getters throw. Never
 * throws itself. The line has at most 1,000 characters and no control characters, so every database can store it.
 */
export function describeError(thrown: unknown): string {
  try {
    return oneLine(describe(thrown, MAX_CAUSES));
  } catch {
    return 'something that cannot be described was thrown';
  }
}

/**
 * Returns the innermost 10 frames of the stack of an error, each on a line of its own, for the log; empty if there are
 * none. Never throws. The message of the error is left out, because {@link describeError} returns it.
 */
export function framesOf(thrown: unknown): string {
  const frames = stackOf(thrown).slice(0, MAX_FRAMES);
  return frames.map((frame) => `\n${frame}`).join('');
}

/** Matches the location at the end of a stack frame, without its line and column. */
const LOCATION =
  /(?<=\(|at (?:async )?)(?:file:\/\/)?((?:\/|[A-Za-z]:[\\/])[^()]*?)(?=:\d+:\d+\)?$)/;

/**
 * Returns the stack frames that are in the application's own files, one per line; empty if there are none. The console
 * shows them. Paths are relative to `directory`. Frames of Node.js and of `node_modules` are left out. At most 10
 * frames and 1,000 characters. Never throws.
 */
export function ownFramesOf(thrown: unknown, directory = process.cwd()): string {
  const own = stackOf(thrown).filter(
    (frame) => LOCATION.test(frame) && !/[\\/]node_modules[\\/]/.test(frame),
  );
  const lines = own
    .slice(0, MAX_FRAMES)
    .map((frame) => frame.trim().replace(LOCATION, (_, path: string) => relative(directory, path)));
  while (lines.join('\n').length > MAX_LENGTH) lines.pop();
  return lines.join('\n').toWellFormed();
}

function stackOf(thrown: unknown): string[] {
  try {
    if (!(thrown instanceof Error)) return [];
    const { stack, message } = thrown;
    if (typeof stack !== 'string') return [];
    // The message is skipped, because its lines may look like frames.
    const start = stack.indexOf(message);
    const traced = stack.slice(start === -1 ? 0 : start + message.length).slice(0, 10_000);
    return traced.match(/^ {4}at [^\n]{1,500}$/gm) ?? [];
  } catch {
    return [];
  }
}

/**
 * Returns the code of a {@link PaymentsError}, otherwise `null`. Never throws, unlike a bare `instanceof`, which throws
 * for a revoked proxy.
 */
export function errorCodeOf(thrown: unknown): PaymentsErrorCode | null {
  try {
    return thrown instanceof PaymentsError ? thrown.code : null;
  } catch {
    return null;
  }
}

/** Whether the error means that another attempt of the handler cannot succeed. Never throws. */
export function isUnrecoverable(thrown: unknown): boolean {
  const code = errorCodeOf(thrown);
  return code === 'unrecoverable' || code === 'data_invalid';
}

function describe(thrown: unknown, causes: number): string {
  if (thrown instanceof Error) {
    const { name, message, cause } = thrown;
    const own = `${name}${codeOf(thrown)}: ${clip(message)}`;
    if (cause === undefined || causes === 1) return own;
    return `${own} (cause: ${describe(cause, causes - 1)})`;
  }
  if (typeof thrown === 'string') return clip(thrown);
  if (typeof thrown === 'object' && thrown !== null) {
    const { message } = thrown as { message?: unknown };
    // Only the message of an object is used, because the other fields may contain the payload.
    return typeof message === 'string' ? clip(message) : 'an object without a message was thrown';
  }
  // String(thrown) would be the source code of the function.
  if (typeof thrown === 'function') return 'a function was thrown';
  return `${clip(String(thrown))} was thrown`;
}

/** Returns the error code in parentheses, for example `data_invalid`, `ECONNREFUSED`, or `23505` of a database. */
function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? ` (${code})` : '';
}

function oneLine(text: string): string {
  return clip(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')).toWellFormed();
}

function clip(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text;
}
