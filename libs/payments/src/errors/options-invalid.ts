import { PaymentsError } from './payments-error.js';

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
