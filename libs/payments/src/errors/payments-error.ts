import type { PaymentsErrorCode } from './payments-error-code.js';

/**
 * Base class of all errors that this package throws, except for invalid arguments (an absolute URL, an empty id), which
 * cause a `TypeError`.
 *
 * `code` is stable and meant for programs; `message` names the cause and the fix and is meant for people.
 * Neither contains a secret, a token, a signature or a payload, and neither do the results of `JSON.stringify` and
 * `util.inspect`.
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
    /** The cause of the error, for programs. */
    readonly code: PaymentsErrorCode,
    message: string,
    /** `cause`: the error that led to this one. */
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
/** Maximum number of errors of a chain of causes that describeError() describes. */
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
  try {
    if (!(thrown instanceof Error)) return '';
    const { stack, message } = thrown;
    if (typeof stack !== 'string') return '';
    // The message is skipped, because its lines may look like frames.
    const start = stack.indexOf(message);
    const traced = stack.slice(start === -1 ? 0 : start + message.length).slice(0, 10_000);
    const frames = traced.match(/^ {4}at [^\n]{1,500}$/gm) ?? [];
    return frames
      .slice(0, MAX_FRAMES)
      .map((frame) => `\n${frame}`)
      .join('');
  } catch {
    return '';
  }
}

/** Whether the error means that another attempt of the handler cannot succeed. Never throws. */
export function isUnrecoverable(thrown: unknown): boolean {
  try {
    return (
      thrown instanceof PaymentsError &&
      (thrown.code === 'unrecoverable' || thrown.code === 'data_invalid')
    );
  } catch {
    // `instanceof` throws for a revoked proxy.
    return false;
  }
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
    // Only the message of an object is used, because the other fields may be payload.
    return typeof message === 'string' ? clip(message) : 'an object without a message was thrown';
  }
  // String(thrown) would be the source code of the function.
  if (typeof thrown === 'function') return 'a function was thrown';
  return `${clip(String(thrown))} was thrown`;
}

/** The error code, for example `data_invalid`, `ECONNREFUSED`, or `23505` of a database. */
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

/** Bounds and default of a number option. */
export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** The unit, for the message: `milliseconds`, `bytes`. */
  readonly unit: string;
}

/** Creates the error for an option that is missing or wrong. The message should name the option and the fix. */
export function optionsInvalid(message: string, details?: ErrorOptions): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsModule: ${message}`, details);
}

/**
 * Returns `value` if it is a whole number within its bounds, or the default if it is undefined.
 *
 * @throws PaymentsError `options_invalid`. The message names the option, unit, bounds and the given value.
 */
export function integerOption(name: string, value: unknown, bounds: IntegerBounds): number {
  if (value === undefined) return bounds.default;
  const { min, max, unit } = bounds;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    throw optionsInvalid(
      `"${name}" must be a whole number of ${unit} from ${min} to ${max}; it is ${shown(value)}. ` +
        `Leave it out for ${bounds.default}.`,
    );
  }
  return value;
}

/**
 * Checks that `input` has no unknown options, so that a misspelt option does not silently keep its default.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function rejectUnknownNames(prefix: string, input: object, known: readonly string[]): void {
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw optionsInvalid(
    `there is no option "${prefix}${unknown}". The options are ${known.join(', ')}.`,
  );
}

/** Whether an option or a variable has no content: not a string, empty, or white space only. */
export function isBlank(value: unknown): boolean {
  return typeof value !== 'string' || value.trim() === '';
}

/**
 * Describes white space or quotes around a secret, for a message that starts with the name of the secret: "ends with a
 * line break. White space …". The text never contains the secret. `undefined` if there are none.
 */
export function surroundingFault(value: string): string | undefined {
  const trimmed = value.trim();
  const faults = [
    value !== value.trimStart() && 'begins with white space',
    value !== value.trimEnd() &&
      (/[\n\r]\s*$/.test(value) ? 'ends with a line break' : 'ends with white space'),
    /^(["'`]).*\1$/s.test(trimmed) && 'is surrounded by quotes',
  ].filter((fault) => fault !== false);
  if (faults.length === 0) return undefined;
  return `${faults.join(' and ')}. White space and quotes around the value are never part of it: remove them.`;
}

/** Formats a value for an error message: briefly, and never with the content of a string, array or object. */
export function shown(value: unknown): string {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    return String(value);
  }
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

/** As {@link shown}, for an option that takes texts of a certain form. It may be a secret, so only its length is shown. */
export function shownText(value: unknown): string {
  return typeof value === 'string' ? `another text of ${value.length} characters` : shown(value);
}
